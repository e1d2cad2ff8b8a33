"""How many credentials a broker vends: cached, with the audit trail on; first requests all at once; uncached.

    python -m bench.vending [--seconds 3] [--rounds 5] [--connections 32]

A broker of one worker runs in a process of its own on SQLite; an STS on loopback that takes 100 ms stands
for the cloud, so that what is measured is the broker's. The load comes from another process over keep-alive
connections. Beside the rate stands the processor time that the broker took for a vend, which other work on
the machine changes little: its inverse is what a core of its own would give.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
import psutil

from lakepass.broker.audit.table import audit_events
from tests.broker.server import RunningBroker, running_broker
from tests.broker.vending.loopback import LoopbackServer, loopback_server, sts_answer

PATH = "/shares/sales/schemas/eu/tables/orders/temporary-table-credentials"
STS_SECONDS = 0.1


@dataclass(frozen=True)
class Load:
    """What a run of the load came to."""

    answered: int
    seconds: float
    latencies: list[float]

    @property
    def rate(self) -> float:
        return self.answered / self.seconds

    def percentile(self, share: float) -> float:
        """In milliseconds."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> None:
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(head.decode())
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
    await reader.readexactly(length)


async def _closed_loop(url: str, token: str, connections: int, seconds: float) -> Load:
    """Each connection asks again as soon as it is answered."""
    address, request = _request(url, token)
    latencies: list[float] = []
    end = time.perf_counter() + seconds

    async def one() -> None:
        reader, writer = await asyncio.open_connection(*address)
        while (begun := time.perf_counter()) < end:
            await _ask(reader, writer, request)
            latencies.append(time.perf_counter() - begun)
        writer.close()

    begun = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(connections)))
    return Load(len(latencies), time.perf_counter() - begun, latencies)


async def _open_loop(url: str, token: str, rate: float, seconds: float) -> Load:
    """Requests at fixed times, whether or not earlier ones are answered; a late start counts as latency."""
    address, request = _request(url, token)
    latencies: list[float] = []
    free: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
    for _ in range(64):
        free.put_nowait(await asyncio.open_connection(*address))

    async def one(due: float) -> None:
        connection = await free.get()
        await _ask(*connection, request)
        latencies.append(time.perf_counter() - due)
        free.put_nowait(connection)

    begun = time.perf_counter()
    tasks = []
    for number in range(int(rate * seconds)):
        due = begun + number / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        tasks.append(asyncio.create_task(one(due)))
    await asyncio.gather(*tasks)
    return Load(len(latencies), time.perf_counter() - begun, latencies)


def _request(url: str, token: str) -> tuple[tuple[str, int], bytes]:
    parts = urlsplit(url)
    lines = [f"POST {parts.path} HTTP/1.1", f"Host: {parts.netloc}", f"Authorization: Bearer {token}"]
    return (parts.hostname or "", parts.port or 80), "\r\n".join(
        [*lines, "Content-Length: 0", "", ""]
    ).encode()


def _in_a_process(kind: str, *arguments: object) -> Load:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_run, (kind, arguments))


def _run(kind: str, arguments: tuple[object, ...]) -> Load:
    return asyncio.run({"closed": _closed_loop, "open": _open_loop}[kind](*arguments))  # type: ignore[arg-type]


def _cpu_seconds(broker: RunningBroker) -> float:
    """Of the server itself: the keeper's child."""
    times = [child.cpu_times() for child in psutil.Process(broker.server.keeper_pid).children(recursive=True)]
    return sum(one.user + one.system for one in times)


def _storage(sts: LoopbackServer) -> dict[str, object]:
    aws = {
        "role_arn": "arn:aws:iam::123456789012:role/data",
        "region": "eu-west-1",
        "sts_endpoint": sts.url,
        "access_key_id": "AKIALOCALBROKER",
        "secret_access_key": "local-broker-secret",
    }
    return {"location": "s3://lake/", "aws": aws}


def _first_requests(broker: RunningBroker, sts: LoopbackServer) -> None:
    profile = broker.recipient("first", shares=["sales"])
    headers = {"Authorization": f"Bearer {profile['bearerToken']}"}
    limits = httpx.Limits(max_connections=200)
    with httpx.Client(headers=headers, timeout=60, limits=limits) as client, ThreadPoolExecutor(200) as pool:
        answers = list(pool.map(lambda _: client.post(broker.url + PATH), range(200)))
    assert all(answer.status_code == 200 for answer in answers)
    print(f"200 first requests at once             {len(sts.asked)} call of STS")


def _uncached(broker: RunningBroker, sts: LoopbackServer, recipients: int) -> None:
    tokens = [broker.recipient(f"cold-{n}", shares=["sales"])["bearerToken"] for n in range(recipients)]
    asked = len(sts.asked)

    with httpx.Client(timeout=60) as client, ThreadPoolExecutor(32) as pool:

        def ask(token: str) -> int:
            return client.post(broker.url + PATH, headers={"Authorization": f"Bearer {token}"}).status_code

        begun = time.perf_counter()
        assert set(pool.map(ask, tokens)) == {200}
    seconds = time.perf_counter() - begun
    calls = len(sts.asked) - asked
    print(
        f"uncached, 32 at once, STS takes 100 ms  {calls / seconds:6.0f}/s of {32 / STS_SECONDS:.0f}/s "
        "that it could give"
    )


def _best_round(
    broker: RunningBroker, url: str, token: str, options: argparse.Namespace
) -> tuple[Load, float]:
    """The round that took the least processor time a vend, and that time."""
    rounds = []
    for _ in range(options.rounds):
        before = _cpu_seconds(broker)
        load = _in_a_process("closed", url, token, options.connections, options.seconds)
        rounds.append((load, (_cpu_seconds(broker) - before) / load.answered))
    return min(rounds, key=lambda one: one[1])


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=3)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--connections", type=int, default=32)
    options = arguments.parse_args()
    with (
        loopback_server(sts_answer(after=STS_SECONDS)) as sts,
        running_broker(storage=[_storage(sts)]) as broker,
    ):
        broker.share_table("sales.eu.orders", "s3://lake/orders", modes=["dir"])
        _first_requests(broker, sts)
        _uncached(broker, sts, 200)
        token = broker.recipient("ann", shares=["sales"])["bearerToken"]
        url = broker.url + PATH
        _in_a_process("closed", url, token, 4, 1.0)
        full, each = _best_round(broker, url, token, options)
        print(
            f"cached, audit on, {options.connections} connections      {full.rate:6.0f}/s   "
            f"p50 {full.percentile(0.5):.1f} ms   p99 {full.percentile(0.99):.1f} ms   "
            f"{each * 1e6:.0f} µs of processor a vend: {1 / each:.0f}/s a core"
        )
        halves = [
            _in_a_process("open", url, token, full.rate / 2, options.seconds) for _ in range(options.rounds)
        ]
        half = min(halves, key=lambda load: load.percentile(0.99))
        print(
            f"the same at half that load             {half.rate:6.0f}/s   p50 {half.percentile(0.5):.1f} "
            f"ms   p99 {half.percentile(0.99):.1f} ms"
        )
        with broker.catalog.engine.connect() as connection:
            rows = connection.execute(audit_events.select().with_only_columns(audit_events.c.id)).all()
        print(f"rows in the audit trail                {len(rows)}")


if __name__ == "__main__":
    main()
