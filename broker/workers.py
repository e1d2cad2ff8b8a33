"""Threads for what waits on a store or takes long: reading logs, signing, writing answers.

The event loop stays free for everything else. The number of threads is bounded, and one table gets at most
a part of them, so that a store that does not answer holds up its own tables only.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Workers:
    """A bounded pool of threads that the tables share."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="table")
        self._share = max(threads // 4, 1)
        self._tables: defaultdict[str, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(self._share)
        )

    async def run(self, table: str, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Do something for a table in a thread; the request's context goes with it."""
        context = contextvars.copy_context()
        async with self._tables[table]:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._pool, lambda: context.run(work, *args, **kwargs))

    def leave(self, work: Callable[[], None]) -> None:
        """Do something in a thread that nobody waits for."""
        with contextlib.suppress(RuntimeError):  # shutting down: it ends with the process
            self._pool.submit(work)

    def close(self) -> None:
        """Wait for what is under way."""
        self._pool.shutdown(wait=True, cancel_futures=True)
