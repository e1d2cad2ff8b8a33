"""Reading ahead: in order, within bounds, errors where they belong, nothing left behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from lakepass.reader.data.read_ahead import read_ahead


def test_items_come_in_the_order_of_their_sources() -> None:
    sources = [lambda start=start: iter(range(start, start + 5)) for start in range(0, 100, 5)]
    assert list(read_ahead(sources, workers=4, depth=2)) == list(range(100))
    assert list(read_ahead(sources, workers=4, depth=None)) == list(range(100))
    assert list(read_ahead([], workers=2, depth=1)) == []


def test_no_source_runs_further_ahead_than_its_depth() -> None:
    made = 0
    lock = threading.Lock()

    def source() -> Iterator[int]:
        nonlocal made
        for number in range(1000):
            with lock:
                made += 1
            yield number

    items = read_ahead([source, source, source], workers=2, depth=3)
    assert next(items) == 0
    threading.Event().wait(0.2)
    # Of each of two running sources: three that wait, one in hand, and the one that was taken.
    assert made <= 2 * (3 + 1) + 1
    items.close()  # type: ignore[attr-defined]  # a generator


def test_an_error_comes_after_the_items_before_it() -> None:
    def broken() -> Iterator[str]:
        yield "last"
        raise ValueError("broken")

    seen = []
    with pytest.raises(ValueError, match="broken"):
        for item in read_ahead([lambda: iter("ab"), broken, lambda: iter("c")], workers=2, depth=1):
            seen.append(item)
    assert seen == ["a", "b", "last"]
    assert not _threads()


def test_an_error_while_planning_reaches_the_consumer() -> None:
    def sources() -> Iterator[object]:
        yield lambda: iter("a")
        raise RuntimeError("no more files")

    with pytest.raises(RuntimeError, match="no more files"):
        list(read_ahead(sources(), workers=3, depth=1))  # type: ignore[arg-type]
    assert not _threads()


def test_whoever_stops_early_leaves_no_thread_behind() -> None:
    closed = threading.Event()

    def endless() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.set()

    items = read_ahead([endless, endless], workers=2, depth=2)
    assert next(items) == 1
    items.close()  # type: ignore[attr-defined]  # a generator
    assert closed.is_set()
    assert not _threads()


def _threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith("lakepass-read")]
