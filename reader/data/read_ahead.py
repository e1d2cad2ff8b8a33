"""Reads several files at once, ahead of whoever consumes the rows, within bounds.

Each file has its own short queue; batches come out in the order of the files. A worker whose queue is full
waits, so memory is a few batches for each worker however large the table is.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

_END = object()


def workers_for(remote: bool) -> int:
    """How many files to read at once: one for each core, more where a request waits for the network."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(2, cores) if not remote else max(4, cores)


def read_ahead(sources: Iterable[Callable[[], Iterator[T]]], workers: int, depth: int | None) -> Iterator[T]:
    """What the sources give, source after source; up to `workers` of them run, `depth` items ahead each.

    >>> list(read_ahead([lambda: iter("ab"), lambda: iter("cd")], workers=2, depth=1))
    ['a', 'b', 'c', 'd']
    """
    reading = _Reading(iter(sources), depth)
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
    def __init__(self, sources: Iterator[Callable[[], Iterator[T]]], depth: int | None) -> None:
        self._sources = sources
        self._depth = depth
        self._changed = threading.Condition()
        self._queues: deque[deque[object]] = deque()
        self._exhausted = False
        self._stopped = False

    def work(self) -> None:
        while (opened := self._next()) is not None:
            queue, source = opened
            try:
                batches = source()
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
                self._queues.popleft()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _next(self) -> tuple[deque[object], Callable[[], Iterator[T]]] | None:
        with self._changed:
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
                self._queues.append(queue)
                self._changed.notify_all()
                return None
            self._queues.append(queue)
            self._changed.notify_all()
            return queue, source

    def _first(self) -> deque[object] | None:
        with self._changed:
            while not self._queues:
                if self._exhausted or self._stopped:
                    return None
                self._changed.wait()
            return self._queues[0]

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
