"""The cache: minted once, served while enough of its life is left, errors forgotten."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lakepass.broker.config import StorageEntry
from lakepass.broker.vending import CloudUnavailable, Grantee, ScopeRefused, Vending
from lakepass.broker.vending.cache import CacheKey, CredentialCache
from lakepass.broker.vending.lifetimes import least_remaining
from lakepass.reader.credentials import AwsKeys, Credential
from lakepass.reader.location import Location
from tests.broker.vending.loopback import Asked, LoopbackServer, loopback_server, sts_answer, sts_error

ORDERS = Location.parse("s3://lake/sales/orders")
KEY = CacheKey("ann", "role", ORDERS, ("read",))
ANN = Grantee("ann")


def credential(life: timedelta, number: int = 0) -> Credential:
    return Credential(str(ORDERS), AwsKeys(f"id-{number}", "s", "t"), datetime.now(UTC) + life)


class Mint:
    """Counts how often it is asked."""

    def __init__(self, life: timedelta = timedelta(hours=1)) -> None:
        self.life = life
        self.count = 0

    def __call__(self) -> Credential:
        self.count += 1
        return credential(self.life, self.count)


def storage(server: LoopbackServer, location: str = "s3://lake/", **aws: Any) -> StorageEntry:
    settings = {
        "role_arn": "arn:aws:iam::123456789012:role/data",
        "region": "eu-west-1",
        "sts_endpoint": server.url,
        "access_key_id": "AKIALOCALBROKER",
        "secret_access_key": "local-broker-secret",
        **aws,
    }
    return StorageEntry.model_validate({"location": location, "aws": settings})


@pytest.mark.parametrize(
    ("life", "floor"),
    [
        (timedelta(hours=12), timedelta(minutes=10)),
        (timedelta(hours=1), timedelta(minutes=10)),
        (timedelta(minutes=20), timedelta(minutes=10)),
        (timedelta(minutes=15), timedelta(minutes=7.5)),
        (timedelta(seconds=6), timedelta(seconds=3)),
    ],
)
def test_what_must_be_left(life: timedelta, floor: timedelta) -> None:
    assert least_remaining(life) == floor


def test_a_held_credential_is_served_again() -> None:
    cache, mint = CredentialCache(), Mint()
    first = cache.obtain(KEY, mint).result()
    assert cache.obtain(KEY, mint).result() is first
    assert cache.get(KEY) is first
    assert mint.count == 1


def test_never_handed_out_with_less_than_half_a_short_life() -> None:
    cache, mint = CredentialCache(), Mint(timedelta(seconds=1))
    served = []
    end = time.monotonic() + 1.6
    while time.monotonic() < end:
        found = cache.obtain(KEY, mint).result()
        served.append(found.remaining())
        time.sleep(0.02)
    assert min(served) > timedelta(seconds=0.4)
    assert 3 <= mint.count <= 5


def test_a_credential_that_arrives_nearly_spent_is_not_kept_beyond_half_of_that() -> None:
    cache, mint = CredentialCache(), Mint(timedelta(milliseconds=200))
    cache.obtain(KEY, mint).result()
    time.sleep(0.12)
    assert cache.get(KEY) is None


@pytest.mark.parametrize(
    "other",
    [
        KEY._replace(recipient="bob"),
        KEY._replace(identity="other"),
        KEY._replace(location=Location.parse("s3://lake/sales/orders2")),
        KEY._replace(permissions=("read", "192.0.2.0/24")),
    ],
)
def test_nobody_gets_a_credential_of_another_key(other: CacheKey) -> None:
    cache, mint = CredentialCache(), Mint()
    assert cache.obtain(KEY, mint).result() is not cache.obtain(other, mint).result()
    assert mint.count == 2


def test_capacity_lets_the_least_recently_used_go() -> None:
    cache, mint = CredentialCache(capacity=2), Mint()
    keys = [KEY._replace(recipient=name) for name in "abc"]
    for key in (keys[0], keys[1], keys[0], keys[2]):
        cache.obtain(key, mint).result()
    assert cache.get(keys[0])
    assert cache.get(keys[2])
    assert cache.get(keys[1]) is None


def test_an_error_reaches_everyone_who_waited_and_is_forgotten() -> None:
    cache = CredentialCache()
    started, release, count = threading.Event(), threading.Event(), 0

    def failing() -> Credential:
        nonlocal count
        count += 1
        started.set()
        release.wait(10)
        raise CloudUnavailable("down")

    waiting = [cache.obtain(KEY, failing)]
    started.wait(10)
    waiting += [cache.obtain(KEY, failing) for _ in range(5)]
    release.set()
    for flight in waiting:
        with pytest.raises(CloudUnavailable):
            flight.result(timeout=10)
    assert count == 1
    assert cache.obtain(KEY, Mint()).result(timeout=10)


def test_two_hundred_threads_make_one_call() -> None:
    with loopback_server(sts_answer(after=0.3)) as server:
        vending, entry = Vending(timedelta(hours=1)), storage(server)
        with ThreadPoolExecutor(200) as pool:
            found = list(pool.map(lambda _: vending.vend(entry, ORDERS, ANN), range(200)))
    assert len(server.asked) == 1
    assert len({id(one) for one in found}) == 1


def test_two_hundred_tasks_make_one_call_per_recipient() -> None:
    async def ask(vending: Vending, entry: StorageEntry) -> list[Credential]:
        grantees = [Grantee("ann"), Grantee("bob")] * 100
        return await asyncio.gather(*(vending.vend_async(entry, ORDERS, grantee) for grantee in grantees))

    with loopback_server(sts_answer(after=0.3)) as server:
        found = asyncio.run(ask(Vending(timedelta(hours=1)), storage(server)))
    assert sorted(asked.form["RoleSessionName"] for asked in server.asked) == ["ann", "bob"]
    assert len({id(one) for one in found}) == 2


def test_a_client_that_goes_away_does_not_cancel_the_others() -> None:
    async def ask(vending: Vending, entry: StorageEntry) -> Credential:
        first = asyncio.create_task(vending.vend_async(entry, ORDERS, ANN))
        second = asyncio.create_task(vending.vend_async(entry, ORDERS, ANN))
        await asyncio.sleep(0.05)
        first.cancel()
        return await second

    with loopback_server(sts_answer(after=0.3)) as server:
        assert asyncio.run(ask(Vending(timedelta(hours=1)), storage(server)))
    assert len(server.asked) == 1


def test_an_error_of_the_cloud_is_not_cached() -> None:
    answers = [sts_error("AccessDenied", status=403)]

    def answer(asked: Asked) -> tuple[int, str]:
        return answers.pop() if answers else sts_answer()(asked)

    with loopback_server(answer) as server:
        vending, entry = Vending(timedelta(hours=1)), storage(server)
        with pytest.raises(Exception, match="refused"):
            vending.vend(entry, ORDERS, ANN)
        assert vending.vend(entry, ORDERS, ANN)


def test_changed_addresses_of_a_recipient_are_another_credential() -> None:
    with loopback_server(sts_answer()) as server:
        vending, entry = Vending(timedelta(hours=1)), storage(server)
        for ranges in ((), ("192.0.2.0/24",), ("198.51.100.0/24",), ()):
            vending.vend(entry, ORDERS, Grantee("ann", ranges))
    assert len(server.asked) == 3


def test_a_location_outside_the_storage_entry_is_refused() -> None:
    with loopback_server(sts_answer()) as server:
        entry = storage(server, "s3://lake/sales/")
        for location in ("s3://lake/salesx/t", "s3://lake/other", "s3://lake2/sales/t"):
            with pytest.raises(ScopeRefused, match="does not lie below"):
                Vending(timedelta(hours=1)).vend(entry, Location.parse(location), ANN)
    assert server.asked == []


def test_checking_calls_no_cloud() -> None:
    with loopback_server(sts_answer()) as server:
        vending, entry = Vending(timedelta(hours=1)), storage(server)
        vending.check(entry, ORDERS)
        with pytest.raises(ScopeRefused):
            vending.check(entry, Location.parse("s3://lake/" + "a" * 1000))
    assert server.asked == []
