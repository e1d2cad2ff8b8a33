"""Reads several files at once, ahead of whoever consumes the rows, within bounds.

Each file has its own short queue; batches come out in the order of the files. A worker whose queue is full
waits, and no file is begun while those that were begun and not yet taken fill the room there is, so memory is
a few batches for each of them however large the table is, and however many files it has.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

_END = object()


class Source(NamedTuple, Generic[T]):
    """Something to read, and how much of the room it takes until all of it was taken."""

    open: Callable[[], Iterator[T]]
    weight: int = 1


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read_ahead(sources: Iterable[Source[T]], workers: int, depth: int | None, room: int) -> Iterator[T]:
    """What the sources give, source after source; up to `workers` of them run, `depth` items ahead each.

    >>> list(read_ahead([Source(lambda: iter("ab")), Source(lambda: iter("cd"))], workers=2, depth=1, room=2))
    ['a', 'b', 'c', 'd']
    """
    reading = _Reading(iter(sources), depth, room)
    threads = [
        threading.Thread(target=reading.work, name=f"lakepass-read-{index}", daemon=True)
        for index in range(workers)
    ]
    for thread in threads:
        thread.start()
    try:
        yield from reading.items()
    finally:
        reading.stop()
        for thread in threads:
            thread.join()


class _Reading(Generic[T]):
    def __init__(self, sources: Iterator[Source[T]], depth: int | None, room: int) -> None:
        self._sources = sources
        self._depth = depth
        self._room = room
        self._changed = threading.Condition()
        self._queues: deque[tuple[deque[object], int]] = deque()
        self._exhausted = False
        self._stopped = False

    def work(self) -> None:
        while (opened := self._next()) is not None:
            queue, source = opened
            try:
                batches = source.open()
                try:
                    for item in batches:
                        if not self._put(queue, item):
                            return
                finally:
                    close = getattr(batches, "close", None)
                    if close is not None:
                        close()
                self._put(queue, _END, always=True)
            except BaseException as error:
                self._put(queue, _Failure(error), always=True)
                return

    def items(self) -> Iterator[T]:
        while (queue := self._first()) is not None:
            while (item := self._take(queue)) is not _END:
                if isinstance(item, _Failure):
                    raise item.error
                yield item  # type: ignore[misc]  # a queue holds items and the two marks
            with self._changed:
                self._room += self._queues.popleft()[1]
                self._changed.notify_all()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _next(self) -> tuple[deque[object], Source[T]] | None:
        with self._changed:
            while self._room <= 0 and not self._stopped and not self._exhausted:
                self._changed.wait()
            if self._stopped or self._exhausted:
                return None
            queue: deque[object] = deque()
            try:
                source = next(self._sources)
            except StopIteration:
                self._exhausted = True
                self._changed.notify_all()
                return None
            except BaseException as error:
                # Planning runs here too, and its errors belong to the consumer.
                self._exhausted = True
                queue.append(_Failure(error))
                self._queues.append((queue, 0))
                self._changed.notify_all()
                return None
            self._room -= source.weight
            self._queues.append((queue, source.weight))
            self._changed.notify_all()
            return queue, source

    def _first(self) -> deque[object] | None:
        with self._changed:
            while not self._queues:
                if self._exhausted or self._stopped:
                    return None
                self._changed.wait()
            return self._queues[0][0]

    def _put(self, queue: deque[object], item: object, *, always: bool = False) -> bool:
        with self._changed:
            while self._depth is not None and len(queue) >= self._depth and not self._stopped and not always:
                self._changed.wait()
            if self._stopped:
                return False
            queue.append(item)
            self._changed.notify_all()
            return True

    def _take(self, queue: deque[object]) -> object:
        with self._changed:
            while not queue:
                self._changed.wait()
            item = queue.popleft()
            self._changed.notify_all()
            return item


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error
