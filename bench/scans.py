"""How long it takes to read rows: ours beside polars, deltalake's QueryBuilder, DuckDB and pyarrow.

    python -m bench.scans [DIRECTORY] [--rows 30000000] [--runs 3]

Every measurement is a fresh process, the median of several, peers in turn with ours; the time is that of the
work, without imports (of the SQL parser and of pandas, which pyarrow loads, too); memory is the process's
peak. DuckDB and pyarrow read the plain table's files, since they do not read a Delta log by themselves. A
peer that cannot read a table, or reads it wrongly, is marked so and does not count; without any that can,
ours is held against the fastest on the plain table.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.memory import peak_mb
from bench.scan_tables import main as make_tables


def _filter(table: str) -> tuple[int, int]:
    files = len(list(Path(table).glob("part-*.parquet")))
    total = files * 1_000_000
    return total // 2, total // 2 + total // 100


def lakepass(table: str, task: str) -> int:
    """Ours."""
    from lakepass.reader import Table

    snapshot = Table(table).snapshot()
    if task == "selective":
        low, high = _filter(table)
        scan = snapshot.scan(["id", "price"], f"id >= {low} and id < {high}")
        return int(scan.to_arrow().num_rows)
    if task == "first":
        return int(next(iter(snapshot.scan().to_reader())).num_rows > 0)
    if task == "stream":
        return sum(batch.num_rows for batch in snapshot.scan().to_reader())
    return int(snapshot.scan().to_arrow().num_rows)


def polars(table: str, task: str) -> int:
    """Polars, with its own Parquet reader on deltalake's log."""
    import polars as pl

    frame = pl.scan_delta(table)
    if task == "selective":
        low, high = _filter(table)
        frame = frame.filter((pl.col("id") >= low) & (pl.col("id") < high)).select("id", "price")
    rows = frame.collect()
    return 1 if task == "first" else rows.height


def deltalake(table: str, task: str) -> int:
    """DataFusion, inside of deltalake."""
    from deltalake import DeltaTable, QueryBuilder

    query = "select * from t"
    if task == "selective":
        low, high = _filter(table)
        query = f"select id, price from t where id >= {low} and id < {high}"
    return int(QueryBuilder().register("t", DeltaTable(table)).execute(query).read_all().num_rows)


def duckdb(table: str, task: str) -> int:
    """DuckDB on the data files."""
    import duckdb as engine

    query = f"select * from read_parquet('{table}/*.parquet')"
    if task == "selective":
        low, high = _filter(table)
        query = query.replace("*", "id, price", 1) + f" where id >= {low} and id < {high}"
    found: Any = engine.sql(query)
    return int(found.to_arrow_table().num_rows)


def pyarrow(table: str, task: str) -> int:
    """pyarrow's dataset on the data files."""
    import pyarrow.dataset as ds

    files = ds.dataset([str(each) for each in sorted(Path(table).glob("*.parquet"))])
    if task == "selective":
        low, high = _filter(table)
        wanted = (ds.field("id") >= low) & (ds.field("id") < high)
        return int(files.to_table(["id", "price"], filter=wanted).num_rows)
    return int(files.to_table().num_rows)


READERS: dict[str, Callable[[str, str], int]] = {
    each.__name__: each for each in (lakepass, polars, deltalake, duckdb, pyarrow)
}
TASKS = {
    "plain": ("plain", ("lakepass", "polars", "deltalake", "duckdb", "pyarrow")),
    "deleted": ("deleted", ("lakepass", "polars", "deltalake")),
    "mapped": ("mapped", ("lakepass", "polars", "deltalake")),
    "selective": ("plain", ("lakepass", "polars", "deltalake", "duckdb", "pyarrow")),
    "first": ("plain", ("lakepass", "polars")),
    "stream": ("plain", ("lakepass",)),
}


def measure(reader: str, table: str, task: str) -> None:
    """One measurement, in this process; prints it."""
    ours = ["lakepass.reader.table", "lakepass.reader.scan", "lakepass.reader.expressions.sql", "pandas"]
    modules = {"lakepass": ours, "pyarrow": ["pyarrow.dataset"]}
    for module in modules.get(reader, [reader, "deltalake"]):
        importlib.import_module(module)
    before = os.times()
    start = time.perf_counter()
    try:
        rows = READERS[reader](table, task)
        error = None
    except Exception as failure:
        rows, error = -1, f"{type(failure).__name__}: {failure}"
    seconds = time.perf_counter() - start
    after = os.times()
    cpu = after.user - before.user + after.system - before.system
    peak = peak_mb()
    print(json.dumps({"seconds": seconds, "cpu": cpu, "peak_mb": peak, "rows": rows, "error": error}))


def run(directory: Path, count: int, runs: int, tasks: list[str]) -> None:
    """All measurements, as a table."""
    fastest_plain: float | None = None
    print(f"{'task':10} {'reader':10} {'seconds':>8} {'cpu':>7} {'peak MB':>8} {'ratio':>6}")
    for task in tasks:
        name, readers = TASKS[task]
        table = str(directory / name)
        found: dict[str, list[dict[str, float]]] = {reader: [] for reader in readers}
        for _ in range(runs):
            for reader in readers:
                command = [sys.executable, "-m", "bench.scans", "--one", reader, table, task]
                output = subprocess.run(command, capture_output=True, text=True, check=False).stdout
                found[reader].append(json.loads(output.splitlines()[-1]))
        expected = {"deleted": count - -(-count // 10), "selective": count // 100, "first": 1}.get(
            task, count
        )
        right = {reader for reader, all_ in found.items() if all(each["rows"] == expected for each in all_)}
        median = {
            reader: statistics.median(each["seconds"] for each in all_) for reader, all_ in found.items()
        }
        peers = [median[reader] for reader in right if reader != "lakepass"]
        held = min(peers) if peers else fastest_plain
        if task == "plain":
            fastest_plain = held
        for reader, all_ in found.items():
            cpu = statistics.median(each["cpu"] for each in all_)
            peak = statistics.median(each["peak_mb"] for each in all_)
            ratio = f"{median[reader] / held:6.2f}" if held else "     -"
            note = "" if reader in right else f"  not read: {all_[0]['error'] or 'wrong rows'}"[:80]
            print(
                f"{task:10} {reader:10} {median[reader]:8.2f} {cpu:7.2f} {peak:8.0f} {ratio}{note}",
                flush=True,
            )


def main() -> None:
    """Parse the command line."""
    if sys.argv[1:2] == ["--one"]:
        measure(*sys.argv[2:5])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, nargs="?")
    parser.add_argument("--rows", type=int, default=30_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--tasks", nargs="*", default=list(TASKS))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        directory = given.directory or Path(scratch)
        if not (directory / "plain").exists():
            make_tables(directory, given.rows)
        run(directory, given.rows, given.runs, given.tasks)


if __name__ == "__main__":
    main()
