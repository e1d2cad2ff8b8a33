"""Credentials stay fresh: once for all threads, before their end, and through failures."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from lakepass.reader.credentials import AwsKeys, AzureSas, Credential, GcpToken, Renewing, renewal_margin
from lakepass.reader.errors import AccessRefusedError

BEGIN = datetime(2030, 1, 1, tzinfo=UTC)


class Clock:
    """A clock that a test turns, and a source of credentials that counts."""

    def __init__(self, life: timedelta | None = timedelta(hours=1)) -> None:
        self.now = BEGIN
        self.life = life
        self.asked = 0
        self.failing = False

    def __call__(self) -> Credential:
        self.asked += 1
        if self.failing:
            raise ConnectionError("the broker is away")
        end = None if self.life is None else self.now + self.life
        return Credential("s3://b/t", AwsKeys(f"key-{self.asked}", "local-secret", "local-token"), end)

    def renewing(self) -> Renewing:
        return Renewing(self, now=lambda: self.now)


def key(credential: Credential) -> str:
    assert isinstance(credential.keys, AwsKeys)
    return credential.keys.access_key_id


@pytest.mark.parametrize(
    ("life", "margin"),
    [
        (timedelta(hours=12), 300),
        (timedelta(minutes=25), 300),
        (timedelta(minutes=10), 120),
        (timedelta(seconds=10), 2),
    ],
)
def test_how_early(life: timedelta, margin: int) -> None:
    assert renewal_margin(life) == timedelta(seconds=margin)
    clock = Clock(life)
    provider = clock.renewing()
    provider()
    clock.now = BEGIN + life - timedelta(seconds=margin)
    provider()
    assert clock.asked == 2, "at the margin it is surely renewed"


def test_not_earlier_than_needed() -> None:
    clock = Clock()
    provider = clock.renewing()
    provider()
    clock.now += timedelta(minutes=53)
    assert key(provider()) == "key-1"


def test_renewals_of_many_readers_are_spread() -> None:
    seen = set()
    for _ in range(50):
        clock = Clock()
        provider = clock.renewing()
        provider()
        seen.add(provider._due)
    assert len(seen) > 10


def test_keys_that_do_not_end_are_asked_for_once() -> None:
    clock = Clock(life=None)
    provider = clock.renewing()
    provider()
    clock.now += timedelta(days=400)
    assert key(provider()) == "key-1"


def test_many_threads_ask_once() -> None:
    clock = Clock()
    provider = clock.renewing()
    with ThreadPoolExecutor(16) as pool:
        found = {key(each) for each in pool.map(lambda _: provider(), range(200))}
    assert (found, clock.asked) == ({"key-1"}, 1)


def test_while_one_renews_the_others_go_on() -> None:
    clock = Clock()
    entered, leave = threading.Event(), threading.Event()

    def slowly() -> Credential:
        if clock.asked:
            entered.set()
            assert leave.wait(10)
        return clock()

    provider = Renewing(slowly, now=lambda: clock.now)
    provider()
    clock.now += timedelta(minutes=58)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(provider)
        assert entered.wait(10)
        assert key(provider()) == "key-1", "does not wait"
        leave.set()
        assert key(first.result()) == "key-2"
    assert key(provider()) == "key-2"


def test_old_keys_are_used_while_a_renewal_fails() -> None:
    clock = Clock()
    provider = clock.renewing()
    provider()
    clock.failing = True
    clock.now += timedelta(minutes=57)
    assert key(provider()) == "key-1"
    asked = clock.asked
    assert key(provider()) == "key-1"
    assert clock.asked == asked, "not asked again at once"
    clock.now += timedelta(seconds=30)
    clock.failing = False
    assert key(provider()) != "key-1"


def test_ended_keys_make_the_failure_visible() -> None:
    clock = Clock()
    provider = clock.renewing()
    provider()
    clock.failing = True
    clock.now += timedelta(minutes=61)
    with pytest.raises(ConnectionError, match="away"):
        provider()
    clock.failing = False
    assert key(provider()) == "key-3"


def test_a_refused_credential_is_renewed_once() -> None:
    clock = Clock()
    provider = clock.renewing()
    first = provider()
    assert provider.refused(first)
    second = provider()
    assert (key(second), clock.asked) == ("key-2", 2)
    assert provider.refused(first), "somebody else had it renewed already"
    assert not provider.refused(second), "a fresh one was refused too: asking again would not help"
    assert clock.asked == 2


def test_a_credential_that_has_ended_already() -> None:
    clock = Clock(life=timedelta(seconds=-1))
    with pytest.raises(AccessRefusedError, match="clock"):
        clock.renewing()()


def test_something_that_is_no_credential() -> None:
    provider: Callable[[], Credential] = lambda: {"key": "x"}  # type: ignore[assignment,return-value] # noqa: E731 # on purpose
    with pytest.raises(TypeError, match="not a Credential"):
        Renewing(provider)()


def picklable() -> Credential:
    return Credential(
        "s3://b/t", AwsKeys("key", "local-secret", "local-token"), datetime.now(UTC) + timedelta(hours=1)
    )


def test_pickles_without_secrets() -> None:
    provider = Renewing(picklable)
    provider()
    data = pickle.dumps(provider)
    assert b"local-secret" not in data
    assert b"local-token" not in data
    assert pickle.loads(data)().location == "s3://b/t"


@pytest.mark.parametrize(
    "keys",
    [AwsKeys("id", "local-secret", "local-secret"), AzureSas("local-secret"), GcpToken("local-secret")],
)
def test_nothing_shows_a_secret(keys: AwsKeys | AzureSas | GcpToken) -> None:
    credential = Credential("s3://b/t", keys, None)
    provider = Renewing(lambda: credential)
    provider()
    assert "local-secret" not in repr(credential) + str(credential) + repr(provider)
