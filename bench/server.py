"""Measures any Delta Sharing server by its base URL and token: rates of cheap calls, and long answers.

python -m bench.server --url http://127.0.0.1:8080/delta-sharing --token T --table share.schema.table --pid
1234 python -m bench.server --own --files 100000

`--own` starts a store and a broker on this machine, with a table of that many files. The client speaks HTTP
over plain sockets, so that what is measured is the server. Memory is the resident set of `--pid` and its
children.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil


@dataclass(frozen=True)
class Target:
    """A server and a table on it."""

    url: str
    token: str
    table: str
    pid: int | None

    def request(self, method: str, path: str, body: bytes = b"", close: bool = False) -> bytes:
        parts = urlsplit(self.url)
        lines = [
            f"{method} {parts.path.rstrip('/')}{path} HTTP/1.1",
            f"Host: {parts.netloc}",
            f"Authorization: Bearer {self.token}",
        ]
        if body:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        if close:
            lines.append("Connection: close")
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        return parts.hostname or "127.0.0.1", parts.port or 80

    def table_path(self, call: str) -> str:
        share, schema, table = self.table.rsplit(".", 2)
        return f"/shares/{share}/schemas/{schema}/tables/{table}{call}"


async def _answer(reader: asyncio.StreamReader) -> int:
    """Read one answer with a length; gives its status."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    if length:
        await reader.readexactly(length)
    return int(head.split(b" ", 2)[1])


async def _rate(target: Target, request: bytes, connections: int, seconds: float) -> dict[str, float]:
    times: list[float] = []
    ends = time.perf_counter() + seconds

    async def one() -> None:
        reader, writer = await asyncio.open_connection(*target.address)
        while (began := time.perf_counter()) < ends:
            writer.write(request)
            status = await _answer(reader)
            if status != 200:
                raise RuntimeError(f"the server answered {status}")
            times.append(time.perf_counter() - began)
        writer.close()

    began, cpu = time.perf_counter(), _cpu_seconds(target.pid)
    await asyncio.gather(*(one() for _ in range(connections)))
    spent, cpu = time.perf_counter() - began, _cpu_seconds(target.pid) - cpu
    ranked = sorted(times)
    per_core = {"per_second_of_cpu": round(len(times) / cpu, 1)} if cpu else {}
    return per_core | {
        "per_second": round(len(times) / spent, 1),
        "p50_ms": round(statistics.median(ranked) * 1000, 2),
        "p99_ms": round(ranked[int(len(ranked) * 0.99)] * 1000, 2),
    }


async def _query(target: Target, body: bytes) -> dict[str, float]:
    """One long answer: when its first line came, when its last, and how much it was."""
    reader, writer = await asyncio.open_connection(*target.address, limit=1 << 22)
    began, cpu = time.perf_counter(), _cpu_seconds(target.pid)
    writer.write(target.request("POST", target.table_path("/query"), body, close=True))
    head = await reader.readuntil(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n", 1)[0]:
        raise RuntimeError(head.decode(errors="replace") + (await reader.read()).decode(errors="replace"))
    size = len(await reader.read(65536))
    first = time.perf_counter() - began
    lines = 0
    while chunk := await reader.read(1 << 20):
        size += len(chunk)
        lines += chunk.count(b"\n")
    writer.close()
    return {
        "first_line_s": round(first, 3),
        "total_s": round(time.perf_counter() - began, 3),
        "cpu_s": round(_cpu_seconds(target.pid) - cpu, 3),
        "megabytes": round(size / 1e6, 1),
    }


def _cpu_seconds(pid: int | None) -> float:
    """Processor time so far: on a busy machine it says more than the clock."""
    if pid is None:
        return 0.0
    used = psutil.Process(pid).cpu_times()
    return float(used.user + used.system)


@contextlib.contextmanager
def _memory(pid: int | None) -> Iterator[dict[str, float]]:
    """The growth of a process' resident set while something runs."""
    found: dict[str, float] = {}
    if pid is None:
        yield found
        return
    process = psutil.Process(pid)
    peak = before = _resident(process)
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.02):
            peak = max(peak, _resident(process))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        done.set()
        thread.join()
        found.update(before_mb=round(before / 1e6, 1), peak_mb=round(peak / 1e6, 1))


def _resident(process: psutil.Process) -> int:
    return sum(each.memory_info().rss for each in [process, *process.children(recursive=True)])


async def _four_at_once(target: Target, body: bytes) -> dict[str, Any]:
    """Four long answers together, and a list asked for all the while."""
    waits: list[float] = []
    running = True

    async def lists() -> None:
        reader, writer = await asyncio.open_connection(*target.address)
        while running:
            began = time.perf_counter()
            writer.write(target.request("GET", "/shares"))
            await _answer(reader)
            waits.append(time.perf_counter() - began)
            await asyncio.sleep(0.02)
        writer.close()

    watcher = asyncio.create_task(lists())
    answers = await asyncio.gather(*(_query(target, body) for _ in range(4)))
    running = False
    await watcher
    ranked = sorted(waits)
    return {
        "slowest_total_s": max(answer["total_s"] for answer in answers),
        "list_p50_ms": round(statistics.median(ranked) * 1000, 1),
        "list_p99_ms": round(ranked[int(len(ranked) * 0.99)] * 1000, 1),
        "list_max_ms": round(ranked[-1] * 1000, 1),
    }


def measure(target: Target, seconds: float, connections: int) -> dict[str, Any]:
    """Everything, one thing after the other."""
    share = target.table.rsplit(".", 2)[0]
    calls = {
        "list_shares": "/shares",
        "list_tables": f"/shares/{share}/all-tables",
        "version": target.table_path("/version"),
        "metadata": target.table_path("/metadata"),
    }
    results: dict[str, Any] = {}
    for name, path in calls.items():
        results[name] = asyncio.run(_rate(target, target.request("GET", path), connections, seconds))
    with _memory(target.pid) as memory:
        results["query"] = asyncio.run(_query(target, b"{}"))
    results["query"] |= memory
    results["query_again"] = asyncio.run(_query(target, b"{}"))
    with _memory(target.pid) as memory:
        results["four_queries"] = asyncio.run(_four_at_once(target, b"{}"))
    results["four_queries"] |= memory
    return results


@contextlib.contextmanager
def own_server(files: int) -> Iterator[Target]:
    """A store, a broker and a table with that many files on this machine."""
    from bench.log_tables import write_table
    from tests.broker.server import running_broker, s3_storage
    from tests.clouds import ministack
    from tests.clouds.run import running

    with tempfile.TemporaryDirectory() as folder, running(ministack.start) as store:
        bucket = store.create_bucket()
        write_table(Path(folder) / "table", files)
        store.seed(Path(folder) / "table", f"s3://{bucket}/table")
        with running_broker(storage=[s3_storage(store, f"s3://{bucket}/")]) as broker:
            broker.share_table("bench.data.table", f"s3://{bucket}/table")
            for number in range(20):
                broker.share_table(f"bench.more.table{number}", f"s3://{bucket}/other{number}")
            profile = broker.recipient("bench", shares=["bench"])
            keeper = psutil.Process(broker.server.keeper_pid)
            (server,) = keeper.children()
            yield Target(broker.url, profile["bearerToken"], "bench.data.table", server.pid)


def main() -> None:
    """Measure and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url")
    parser.add_argument("--token")
    parser.add_argument("--table")
    parser.add_argument("--pid", type=int)
    parser.add_argument("--own", action="store_true")
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--connections", type=int, default=16)
    options = parser.parse_args()
    if options.own:
        with own_server(options.files) as target:
            results = measure(target, options.seconds, options.connections)
    else:
        target = Target(options.url, options.token, options.table, options.pid)
        results = measure(target, options.seconds, options.connections)
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
