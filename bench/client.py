"""From a profile to rows: ours by directory and by URL, beside the delta-sharing package in both its formats.

    python -m bench.client [--files 10000] [--rows 30000000] [--runs 3]

A store (SeaweedFS) and a broker are started on this machine, with a table of many small files and a large
one. Every measurement is a fresh process, the median of several; the time begins before the profile is read
and is without imports; the processor's time, which says more on a busy machine, is with them. The
delta-sharing package gives no batches, so its first row is its last.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.memory import peak_mb

FILE_ROWS = 100


def _ours(access: Any) -> Callable[[str, str], tuple[float, int]]:
    def read(profile: str, name: str) -> tuple[float, int]:
        from lakepass.reader import SharingClient

        begun = time.perf_counter()
        reader = SharingClient(profile).table(name, access=access).to_reader()
        reader.read_next_batch()
        return time.perf_counter() - begun, 0

    return read


def _ours_whole(access: Any) -> Callable[[str, str], tuple[float, int]]:
    def read(profile: str, name: str) -> tuple[float, int]:
        from lakepass.reader.sharing.loading import load_as_pandas

        begun = time.perf_counter()
        frame = load_as_pandas(f"{profile}#{name}", access=access)
        return time.perf_counter() - begun, len(frame)

    return read


def _package(delta: bool) -> Callable[[str, str], tuple[float, int]]:
    def read(profile: str, name: str) -> tuple[float, int]:
        import delta_sharing  # type: ignore[import-untyped]  # the package has no types

        begun = time.perf_counter()
        frame = delta_sharing.load_as_pandas(f"{profile}#{name}", use_delta_format=delta)
        return time.perf_counter() - begun, len(frame)

    return read


WAYS: dict[str, Callable[[str, str], tuple[float, int]]] = {
    "lakepass dir, first batch": _ours("dir"),
    "lakepass url, first batch": _ours("url"),
    "lakepass dir, all rows": _ours_whole("dir"),
    "lakepass url, all rows": _ours_whole("url"),
    "delta-sharing parquet": _package(False),
    "delta-sharing delta": _package(True),
}


def _many_files(store: Any, bucket: str, files: int) -> None:
    """A table of `files` files of a hundred rows, in one commit."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    client = store.s3()
    fields = [("id", "long"), ("name", "string"), ("price", "double")]
    schema = {
        "type": "struct",
        "fields": [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in fields],
    }

    def put(number: int) -> str:
        ids = range(number * FILE_ROWS, (number + 1) * FILE_ROWS)
        rows: dict[str, Any] = {
            "id": list(ids),
            "name": [f"name {one}" for one in ids],
            "price": [one / 7 for one in ids],
        }
        held = io.BytesIO()
        pq.write_table(pa.table(rows), held)
        path = f"part-{number:05}-{uuid.uuid4()}.snappy.parquet"
        client.put_object(Bucket=bucket, Key=f"many/{path}", Body=held.getvalue())
        stats = {
            "numRecords": FILE_ROWS,
            "minValues": {"id": ids[0]},
            "maxValues": {"id": ids[-1]},
            "nullCount": {"id": 0},
        }
        add = {"path": path, "partitionValues": {}, "size": len(held.getvalue()), "modificationTime": 0}
        return json.dumps({"add": {**add, "dataChange": True, "stats": json.dumps(stats)}})

    with ThreadPoolExecutor(8) as pool:
        adds = list(pool.map(put, range(files)))
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema),
        "partitionColumns": [],
        "configuration": {},
    }
    lines = [json.dumps({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}})]
    lines += [json.dumps({"metaData": metadata}), *adds]
    client.put_object(
        Bucket=bucket, Key="many/_delta_log/00000000000000000000.json", Body="\n".join(lines).encode()
    )


def _large(store: Any, bucket: str, rows: int, folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "bench.scan_tables", str(folder), "--rows", str(rows)], check=True)
    root = folder / "plain"
    for file in sorted(root.rglob("*")):
        if file.is_file():
            store.s3().upload_file(str(file), bucket, f"large/{file.relative_to(root).as_posix()}")


def _measured(way: str, profile: str, name: str, runs: int) -> dict[str, float] | None:
    results = []
    for _ in range(runs):
        words = [sys.executable, "-m", "bench.client", "--measure", way, profile, name]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            print(f"  {way}: failed: {done.stderr.strip().splitlines()[-1][:200]}")
            return None
        results.append(json.loads(done.stdout))
    return {key: statistics.median(result[key] for result in results) for key in results[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=30_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--measure", nargs=3, metavar=("WAY", "PROFILE", "TABLE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        way, profile, name = options.measure
        seconds, rows = WAYS[way](profile, name)
        peak = peak_mb()
        used = time.process_time()
        print(json.dumps({"seconds": seconds, "rows": rows, "peak_mb": peak, "cpu": used}))
        return

    from tests.broker.server import running_broker
    from tests.clouds import seaweedfs
    from tests.clouds.run import running

    with tempfile.TemporaryDirectory() as temporary, running(seaweedfs.start) as store:
        folder = Path(temporary)
        bucket = store.create_bucket()
        tables = []
        if options.files:
            _many_files(store, bucket, options.files)
            tables.append("many")
        if options.rows:
            _large(store, bucket, options.rows, folder / "tables")
            tables.append("large")
        aws = {
            "role_arn": store.role_arn,
            "endpoint": store.endpoint,
            "sts_endpoint": store.endpoint,
            "region": store.region,
            "path_style": True,
            "access_key_id": store.broker.access_key_id,
            "secret_access_key": store.broker.secret_access_key,
        }
        with running_broker(storage=[{"location": f"s3://{bucket}/", "aws": aws}]) as broker:
            for name in tables:
                broker.share_table(f"s.d.{name}", f"s3://{bucket}/{name}", modes=("url", "dir"))
            profile = folder / "me.share"
            profile.touch(mode=0o600)
            profile.write_text(json.dumps(broker.recipient("ann", shares=["s"])))
            for name in tables:
                _report(name, profile, options.runs)


def _report(name: str, profile: Path, runs: int) -> None:
    print(f"\n{name}", flush=True)
    found = {}
    for way in WAYS:
        # The package takes minutes on many files; once is enough to compare with.
        found[way] = _measured(way, str(profile), f"s.d.{name}", 1 if way.startswith("delta") else runs)
    counts = {result["rows"] for result in found.values() if result is not None and result["rows"]}
    assert len(counts) == 1, f"the ways do not agree on the number of rows: {counts}"
    peers = [result["seconds"] for way, result in found.items() if result and way.startswith("delta-sharing")]
    for way, result in found.items():
        if result is None:
            continue
        seconds, cpu, peak = result["seconds"], result["cpu"], result["peak_mb"]
        ratio = (
            ""
            if way.startswith("delta-sharing") or not peers
            else f"  {min(peers) / seconds:6.1f}x the package"
        )
        print(f"  {way:<28} {seconds:8.2f} s  {cpu:8.2f} s cpu  {peak:6.0f} MB{ratio}")


if __name__ == "__main__":
    main()
