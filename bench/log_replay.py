"""How long the log takes: ours beside deltalake, polars and the kernel that Delta Sharing's client brings.

    python -m bench.log_replay [DIRECTORY] [--adds 1000000] [--runs 3]

Every measurement is a fresh process, the median of several; the time is that of the work, without imports;
memory is the process's peak. Peers that cannot do a task are left out of it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.log_tables import main as make_tables
from bench.memory import peak_mb

KEPT = 0.01


def _lakepass_files(table: str) -> int:
    from lakepass.reader import Table

    return sum(batch.num_rows for batch in Table(table).snapshot().file_batches())


def _lakepass_open(table: str) -> int:
    from lakepass.reader import Table

    snapshot = Table(table).snapshot()
    return snapshot.version + len(snapshot.schema)


def _lakepass_filter(table: str) -> int:
    from lakepass.reader import Table

    return int(Table(table).snapshot().scan(filter=f"id < {_bound(table)}").files().num_rows)


def _deltalake_files(table: str) -> int:
    from deltalake import DeltaTable

    return sum(1 for _ in range(DeltaTable(table).get_add_actions(flatten=False).num_rows))


def _deltalake_open(table: str) -> int:
    from deltalake import DeltaTable

    opened = DeltaTable(table)
    return opened.version() + len(opened.schema().fields)


def _polars_open(table: str) -> int:
    import polars

    return len(polars.scan_delta(table).collect_schema())


def _polars_filter(table: str) -> int:
    """What polars does to plan: the files that are left are seen in the plan only, the data is not there."""
    import polars

    plan = polars.scan_delta(table).filter(polars.col("id") < _bound(table))
    return len(plan.explain())


def _kernel_open(table: str) -> int:
    from delta_kernel_rust_sharing_wrapper import (  # type: ignore[import-untyped] # no stubs
        PythonInterface,
        ScanBuilder,
        Table,
    )

    interface = PythonInterface(Path(table).as_uri() + "/")
    snapshot = Table(Path(table).as_uri() + "/").snapshot(interface)
    ScanBuilder(snapshot).build()
    return int(snapshot.version())


def _bound(table: str) -> int:
    count = json.loads((Path(table) / "_delta_log" / "_last_checkpoint").read_text())["size"]
    return int(count * 1000 * KEPT)


TASKS: dict[str, dict[str, Callable[[str], int]]] = {
    "files": {"lakepass": _lakepass_files, "deltalake": _deltalake_files},
    "open": {
        "lakepass": _lakepass_open,
        "deltalake": _deltalake_open,
        "polars": _polars_open,
        "kernel": _kernel_open,
    },
    "filter": {"lakepass": _lakepass_filter, "polars": _polars_filter},
}
WORK = [
    ("files", "classic"),
    ("files", "sidecars"),
    ("files", "commits"),
    ("filter", "classic"),
    ("open", "small"),
    ("open", "classic"),
]


# What a peer loads on first use is loaded before the clock starts, ours and theirs.
PRELOADED = {
    "lakepass": ["lakepass.reader.table", "lakepass.reader.scan", "sqlglot", "pandas"],
    "polars": ["polars", "deltalake", "pandas"],
    "kernel": ["delta_kernel_rust_sharing_wrapper"],
}


def _run_one(task: str, peer: str, table: str) -> None:
    """One measurement, in this process; prints it as JSON."""
    work = TASKS[task][peer]
    for module in PRELOADED.get(peer, [peer]):
        __import__(module)
    start, worked = time.perf_counter(), time.process_time()
    result = work(table)
    seconds, worked = time.perf_counter() - start, time.process_time() - worked
    print(
        json.dumps(
            {
                "seconds": seconds,
                "cpu": worked,
                "peak": peak_mb(),
                "result": result,
            }
        )
    )


def _measure(task: str, peer: str, table: Path, runs: int) -> dict[str, float] | str:
    found = []
    for _ in range(runs):
        command = [sys.executable, "-m", "bench.log_replay", "--one", task, peer, str(table)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return (done.stderr.strip().splitlines() or ["failed"])[-1][:80]
        found.append(json.loads(done.stdout.strip().splitlines()[-1]))
    return {
        "seconds": statistics.median(each["seconds"] for each in found),
        "cpu": statistics.median(each["cpu"] for each in found),
        "peak": statistics.median(each["peak"] for each in found),
        "result": found[0]["result"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "directory", nargs="?", type=Path, default=Path(tempfile.gettempdir()) / "lakepass-bench"
    )
    parser.add_argument("--adds", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--one", nargs=3, metavar=("TASK", "PEER", "TABLE"))
    arguments = parser.parse_args()
    if arguments.one:
        _run_one(*arguments.one)
        return
    sys.argv = [sys.argv[0], str(arguments.directory), "--adds", str(arguments.adds)]
    make_tables()
    print(
        f"{'work':<18}{'who':<12}{'seconds':>10}{'cpu':>8}{'MiB':>8}{'ours/theirs':>13}{'cpu':>7}{'memory':>8}"
        "  result"
    )
    for task, name in WORK:
        if arguments.only not in f"{task} {name}":
            continue
        ours: dict[str, float] | str = ""
        for peer in TASKS[task]:
            found = _measure(task, peer, arguments.directory / name, arguments.runs)
            if peer == "lakepass":
                ours = found
            if isinstance(found, str):
                print(f"{task + ' ' + name:<18}{peer:<12}{found}")
                continue
            ratio = cpu = memory = ""
            if peer != "lakepass" and isinstance(ours, dict):
                ratio = f"{ours['seconds'] / found['seconds']:.3f}"
                cpu = f"{ours['cpu'] / found['cpu']:.3f}"
                memory = f"{ours['peak'] / found['peak']:.2f}"
            print(
                f"{task + ' ' + name:<18}{peer:<12}{found['seconds']:>10.3f}{found['cpu']:>8.2f}"
                f"{found['peak']:>8.0f}{ratio:>13}{cpu:>7}{memory:>8}"
                f"  {found['result']:.0f}"
            )


if __name__ == "__main__":
    main()
