"""Reading ahead: in order, within bounds, errors where they belong, nothing left behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from lakepass.reader.data.read_ahead import Source, read_ahead


def test_items_come_in_the_order_of_their_sources() -> None:
    sources = [Source(range(start, start + 5).__iter__) for start in range(0, 100, 5)]
    for room in (1, 3, 100):
        assert list(read_ahead(sources, workers=4, depth=2, room=room)) == list(range(100))
        assert list(read_ahead(sources, workers=4, depth=None, room=room)) == list(range(100))
    nothing: list[Source[int]] = []
    assert list(read_ahead(nothing, workers=2, depth=1, room=1)) == []


def test_no_source_runs_further_ahead_than_its_depth() -> None:
    made = 0
    lock = threading.Lock()

    def source() -> Iterator[int]:
        nonlocal made
        for number in range(1000):
            with lock:
                made += 1
            yield number

    items = read_ahead([Source(source)] * 3, workers=2, depth=3, room=9)
    assert next(items) == 0
    threading.Event().wait(0.2)
    # Of each of two running sources: three that wait, one in hand, and the one that was taken.
    assert made <= 2 * (3 + 1) + 1
    items.close()  # type: ignore[attr-defined]  # a generator


def test_sources_that_end_at_once_are_not_all_read_ahead() -> None:
    opened: list[int] = []

    def source(number: int) -> Source[int]:
        def items() -> Iterator[int]:
            opened.append(number)
            yield number

        return Source(items, weight=2)

    items = read_ahead((source(number) for number in range(1000)), workers=3, depth=2, room=10)
    assert next(items) == 0
    threading.Event().wait(0.2)
    # Five have room; whoever takes an item has not taken its source's end yet.
    assert len(opened) == 5
    assert list(items) == list(range(1, 1000))


def test_an_error_comes_after_the_items_before_it() -> None:
    def broken() -> Iterator[str]:
        yield "last"
        raise ValueError("broken")

    seen = []
    sources = [Source(lambda: iter("ab")), Source(broken), Source(lambda: iter("c"))]
    with pytest.raises(ValueError, match="broken"):
        for item in read_ahead(sources, workers=2, depth=1, room=2):
            seen.append(item)
    assert seen == ["a", "b", "last"]
    assert not _threads()


def test_an_error_while_planning_reaches_the_consumer() -> None:
    def sources() -> Iterator[Source[str]]:
        yield Source(lambda: iter("a"))
        raise RuntimeError("no more files")

    with pytest.raises(RuntimeError, match="no more files"):
        list(read_ahead(sources(), workers=3, depth=1, room=3))
    assert not _threads()


def test_whoever_stops_early_leaves_no_thread_behind() -> None:
    closed = threading.Event()

    def endless() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.set()

    items = read_ahead([Source(endless)] * 2, workers=2, depth=2, room=2)
    assert next(items) == 1
    items.close()  # type: ignore[attr-defined]  # a generator
    assert closed.is_set()
    assert not _threads()


def _threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith("lakepass-read")]
