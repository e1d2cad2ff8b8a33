from __future__ import annotations

from collections.abc import Iterator

import pytest

from lakepass.reader.sharing.profile import Profile
from lakepass.reader.sharing.rest import Rest
from lakepass.reader.sharing.transport import Patience, Transport
from tests.reader.sharing.folder import FolderShare
from tests.reader.sharing.server import Server, serving

QUICK = Patience(first_pause=0.01, longest_pause=0.05, connect=10.0, read=30.0)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture
def other() -> Iterator[Server]:
    """A server of another origin."""
    with serving() as running:
        yield running


@pytest.fixture
def rest(server: Server) -> Iterator[Rest]:
    transport = Transport(Profile.load(server.profile), QUICK)
    yield Rest(transport)
    transport.close()


@pytest.fixture
def share(server: Server) -> FolderShare:
    return FolderShare(server)
