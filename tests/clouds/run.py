"""One run of the tests, and the servers that live as long as it does.

The process that was started by hand (under pytest-xdist: the controller) owns the run and its lifeline.
Any worker may be the first to need a server; it starts it under a file lock and leaves its address for
the others, so that each server is started at most once, and only when a test asks.
"""

from __future__ import annotations

import fcntl
import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from lakepass.cli.demo.keeper import Lifeline, Server


class Unavailable(RuntimeError):
    """A server cannot be had on this machine; the message says why, and becomes the reason of a skip."""


class Store(Protocol):
    """What a run keeps: the addresses of a store, and the processes behind it. It must pickle."""

    @property
    def servers(self) -> tuple[Server, ...]:
        """The processes behind it."""
        ...


StoreT = TypeVar("StoreT", bound=Store)


class Run:
    """Where a run keeps its servers; the same for every worker of the run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def lifeline(self) -> Path:
        """The file that servers watch: they end when its owner lets go of it."""
        return self.folder / "lifeline"

    def once(self, name: str, start: Callable[[Run], StoreT]) -> StoreT:
        """The store called `name`, started by whoever asks first."""
        answer = self.folder / f"{name}.pickle"
        with locked(self.folder / f"{name}.lock"):
            if not answer.exists():
                try:
                    outcome: StoreT | Unavailable = start(self)
                except Unavailable as reason:
                    outcome = reason
                answer.write_bytes(pickle.dumps(outcome))
        found: StoreT | Unavailable = pickle.loads(answer.read_bytes())
        if isinstance(found, Unavailable):
            raise found
        return found


class OwnedRun(Run):
    """The run as its owner holds it."""

    def __init__(self) -> None:
        super().__init__(Path(tempfile.mkdtemp(prefix="lakepass-tests-")))
        # A server that runs as another user (PostgreSQL, under root) must be able to pass through.
        self.folder.chmod(0o711)
        self._held = Lifeline(self.lifeline)

    def end(self) -> None:
        """End every server, wait until they are gone, and remove what they wrote."""
        self._held.release()
        for answer in self.folder.glob("*.pickle"):
            outcome: Store | Unavailable = pickle.loads(answer.read_bytes())
            for server in () if isinstance(outcome, Unavailable) else outcome.servers:
                server.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def running(start: Callable[[Run], StoreT]) -> Iterator[StoreT]:
    """A store outside pytest, for benchmarks and for trying things by hand."""
    run = OwnedRun()
    try:
        yield start(run)
    finally:
        run.end()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold `path` against other processes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
