"""A server process that cannot outlive whoever asked for it.

`Lifeline` is a file its owner holds a lock on; the kernel lets go of the lock however the owner ends,
SIGKILL included. Each server is started by a keeper, this file run as a program: it puts the server in a
session of its own (so Ctrl-C in a terminal reaches the owner first), waits for the owner's lock to be
free, then ends the server's whole process group and removes its folder. Where the keeper itself is
killed, Linux ends the server for it.

Only the standard library is used, so that a keeper starts in a few hundredths of a second.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import fcntl
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

_GRACE_SECONDS = 5.0
_PR_SET_PDEATHSIG = 1
_KEEPERS: list[subprocess.Popen[bytes]] = []
"""Started by this process; kept so that they can be reaped."""


class ServerError(RuntimeError):
    """A server did not start; the message holds the end of what it printed."""


class Lifeline:
    """Held by the owner for as long as its servers shall live.

    POSIX record locks are used: they belong to one process, so a fork of the owner does not keep servers
    alive.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.lockf(self._descriptor, fcntl.LOCK_EX)

    def release(self) -> None:
        """Let every server on this lifeline end; `Server.wait` says when one has."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Lifeline:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


@dataclass(frozen=True)
class Server:
    """A running server; safe to hand to another process."""

    name: str
    keeper_pid: int
    folder: Path
    log: Path

    def running(self) -> bool:
        """Whether the server, its keeper or anything they started is still there.

        They hold the lock that `keep` took on the log: no process number that may by now be somebody else's.
        """
        try:
            with self.log.open("rb") as log:
                fcntl.flock(log, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def stop(self) -> None:
        """End the server now and wait until it is gone."""
        if self.running():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.keeper_pid, signal.SIGTERM)
        self.wait()

    def wait(self, seconds: float = 3 * _GRACE_SECONDS) -> None:
        """Wait until the server is gone and its folder removed."""
        deadline = time.monotonic() + seconds
        while self.running():
            if time.monotonic() > deadline:
                raise ServerError(
                    f"{self.name} (keeper {self.keeper_pid}) is still there after {seconds:g} s."
                )
            time.sleep(0.02)
        for keeper in _KEEPERS:
            keeper.poll()

    def wait_until(self, ready: Callable[[], bool], seconds: float = 60.0) -> None:
        """Wait until `ready` says so; a server that ended, or took too long, is an error with its last
        words.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            if not self.running():
                raise ServerError(f"{self.name} ended before it was ready:\n{self.last_words()}")
            if time.monotonic() > deadline:
                self.stop()
                raise ServerError(f"{self.name} was not ready after {seconds:g} s:\n{self.last_words()}")
            time.sleep(0.05)

    def last_words(self) -> str:
        """The end of what the server printed."""
        try:
            return self.log.read_text(errors="replace")[-2000:]
        except FileNotFoundError:
            return "(its log is gone)"


def keep(
    name: str,
    command: Sequence[str],
    *,
    folder: Path,
    lifeline: Path,
    environment: Mapping[str, str] | None = None,
    user: str | None = None,
    abrupt: bool = False,
) -> Server:
    """Start `command` in `folder`, which is its own to fill and is removed with it.

    The log is written beside the folder, so that it can still be read after an early end. `environment`
    replaces the owner's; `user` runs the server as another user, for those that refuse root; `abrupt` ends it
    without asking first, for those that would take seconds to save what is about to be removed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = folder.with_name(folder.name + ".log")
    arguments = [sys.executable, "-I", __file__, "--lifeline", str(lifeline), "--folder", str(folder)]
    if abrupt:
        arguments.append("--abrupt")
    if user is not None:
        arguments += ["--user", user]
        shutil.chown(folder, user)
    with log.open("ab") as output:
        fcntl.flock(output, fcntl.LOCK_EX)
        keeper = subprocess.Popen(  # noqa: S603 (the caller's own command)
            [*arguments, "--", *command],
            cwd=folder,
            env=None if environment is None else dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _KEEPERS.append(keeper)
    return Server(name, keeper.pid, folder, log)


def free_port() -> int:
    """A loopback TCP port nobody listens on."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Different loopback TCP ports nobody listens on."""
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(socket.socket()) for _ in range(count)]
        for listener in listeners:
            listener.bind(("127.0.0.1", 0))
        return [int(listener.getsockname()[1]) for listener in listeners]


def listening(port: int) -> bool:
    """Whether something accepts connections on a loopback port."""
    with socket.socket() as caller:
        caller.settimeout(1)
        return caller.connect_ex(("127.0.0.1", port)) == 0


def _end_with_keeper() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _end_group(server: subprocess.Popen[bytes], *, abrupt: bool) -> None:
    """Ask the server's process group to end, unless `abrupt`; insist after a while."""
    if not abrupt:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(server.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(_GRACE_SECONDS)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(server.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.wait(_GRACE_SECONDS)


def _main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lifeline", required=True, type=Path)
    parser.add_argument("--folder", required=True, type=Path)
    parser.add_argument("--user")
    parser.add_argument("--abrupt", action="store_true")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    owner = os.open(options.lifeline, os.O_RDONLY | os.O_CLOEXEC)
    entry = pwd.getpwnam(options.user) if options.user else None
    server = subprocess.Popen(  # noqa: S603 (the caller's own command)
        options.command,
        start_new_session=True,
        preexec_fn=_end_with_keeper,  # noqa: PLW1509 (there is no thread yet)
        user=entry.pw_uid if entry else None,
        group=entry.pw_gid if entry else None,
        extra_groups=[] if entry else None,
    )

    def watch() -> None:
        fcntl.lockf(owner, fcntl.LOCK_SH)
        os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    threading.Thread(target=watch, daemon=True).start()
    try:
        return server.wait()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _end_group(server, abrupt=options.abrupt)
        shutil.rmtree(options.folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(_main())
