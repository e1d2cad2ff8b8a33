"""Files behind addresses: ranges, retries, addresses that end, and nothing secret in an error."""

from __future__ import annotations

import gzip
import http.server
import io
import pickle
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakepass.reader.errors import AccessRefusedError, FileMissingError, StorageError
from lakepass.reader.storage import TooLargeError
from lakepass.reader.storage import http as http_storage
from lakepass.reader.storage.http import HttpStorage

FILE = io.BytesIO()
pq.write_table(
    pa.table({"a": list(range(5000)), "b": [str(each) * 20 for each in range(5000)]}),
    FILE,
    row_group_size=1000,
)
DATA = FILE.getvalue()


class Server(http.server.ThreadingHTTPServer):
    """Serves DATA to addresses signed `ok`; misbehaves as told."""

    daemon_threads = True
    trouble: list[int | str]
    asked: list[str]
    knows_ranges = True
    compresses = False
    wrong_by = 0
    connections = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/file.parquet"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        signature = parse_qs(urlsplit(self.path).query).get("sig", [""])[0]
        if self.server.trouble:
            trouble = self.server.trouble.pop(0)
            if trouble == "drop":
                self.close_connection = True
                self.connection.close()
                return None
            if trouble == "hang":
                threading.Event().wait(1)
                self.close_connection = True
                return None
            if trouble == "elsewhere":
                self.send_response(307)
                self.send_header("Location", "/file.parquet?sig=ok")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return None
            if trouble == "cut":
                self.send_response(200)
                self.send_header("Content-Length", str(len(DATA)))
                self.end_headers()
                self.wfile.write(DATA[:10])
                self.close_connection = True
                return None
            return self._answer(int(trouble), b"trouble")
        if signature != "ok":
            return self._answer(403, b"<Error>AccessDenied</Error>")
        if urlsplit(self.path).path != "/file.parquet":
            return self._answer(404, b"")
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if wanted is None or not self.server.knows_ranges:
            return self._answer(200, DATA)
        start, end = (int(each or len(DATA) - 1) + self.server.wrong_by for each in wanted.groups())
        return self._answer(206, DATA[start : end + 1], f"bytes {start}-{end}/{len(DATA)}")

    def _answer(self, status: int, body: bytes, content_range: str | None = None) -> None:
        self.send_response(status)
        if self.server.compresses and "gzip" in self.headers.get("Accept-Encoding", ""):
            self.send_header("Content-Encoding", "gzip")
            body = gzip.compress(body)
        self.send_header("Content-Length", str(len(body)))
        if content_range:
            self.send_header("Content-Range", content_range)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing on the terminal."""


@contextmanager
def running() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as server:
        server.trouble, server.asked = [], []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(http_storage, "_FIRST_WAIT", 0.001)
    with running() as each:
        yield each


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_reads(server: Server, knows_ranges: bool) -> None:
    server.knows_ranges = knows_ranges
    storage = HttpStorage()
    path = f"{server.address}?sig=ok#file-7"
    assert storage.read(path) == DATA
    assert storage.read(path, offset=100, length=50) == DATA[100:150]
    assert storage.read(path, offset=len(DATA) - 10) == DATA[-10:]
    assert storage.read(path, length=0) == b""
    assert all("#" not in asked and "file-7" not in asked for asked in server.asked)


def test_one_connection_serves_many_ranges(server: Server) -> None:
    storage = HttpStorage()
    for offset in range(0, 1000, 100):
        assert (
            storage.read(f"{server.address}?sig=ok", offset=offset, length=50) == DATA[offset : offset + 50]
        )
    assert len(server.asked) == 10
    assert server.connections == 1


def test_a_server_that_compresses_is_not_asked_to(server: Server) -> None:
    server.compresses = True
    storage = HttpStorage()
    assert storage.read(f"{server.address}?sig=ok") == DATA
    assert storage.read(f"{server.address}?sig=ok", offset=100, length=50) == DATA[100:150]


def test_another_range_than_was_asked_for_is_refused(server: Server) -> None:
    server.wrong_by = 7
    with pytest.raises(StorageError, match="from 100 on were asked for, and the server sent those from 107"):
        HttpStorage().read(f"{server.address}?sig=ok", offset=100, length=50)


@pytest.mark.parametrize("known", [True, False])
def test_parquet_by_ranges(server: Server, known: bool) -> None:
    file = HttpStorage().open(f"{server.address}?sig=ok", len(DATA) if known else None)
    opened = pq.ParquetFile(file, pre_buffer=True)
    assert opened.read_row_group(2, columns=["a"]).column("a").to_pylist() == list(range(2000, 3000))
    assert opened.read().num_rows == 5000


def test_an_address_that_ended_is_renewed_once(server: Server) -> None:
    renewed: list[str] = []

    def renew(path: str) -> str:
        renewed.append(path)
        return f"{server.address}?sig=ok&fresh=1"

    storage = HttpStorage(renew)
    path = f"{server.address}?sig=ended#f1"
    assert storage.read(path, offset=5, length=5) == DATA[5:10]
    assert storage.read(path, offset=10, length=5) == DATA[10:15]
    assert renewed == [path], "the new address is remembered"


def test_threads_renew_an_address_once(server: Server) -> None:
    from concurrent.futures import ThreadPoolExecutor

    renewed: list[str] = []

    def renew(path: str) -> str:
        renewed.append(path)
        return f"{server.address}?sig=ok"

    storage = HttpStorage(renew)
    path = f"{server.address}?sig=ended"
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda start: storage.read(path, offset=start, length=3), range(40)))
    assert found == [DATA[start : start + 3] for start in range(40)]
    assert len(renewed) == 1


def test_a_renewed_address_that_is_refused_too(server: Server) -> None:
    storage = HttpStorage(lambda _path: f"{server.address}?sig=local-secret-2")
    with pytest.raises(AccessRefusedError) as told:
        storage.read(f"{server.address}?sig=local-secret-1")
    assert "local-secret" not in str(told.value)
    assert server.address in str(told.value)
    assert len(server.asked) == 2


@pytest.mark.parametrize("trouble", [[503], [429, 500], ["drop"], ["drop", 503, "drop"], ["cut"], [408]])
def test_trouble_on_the_way_is_gone_through(server: Server, trouble: list[int | str]) -> None:
    server.trouble = list(trouble)
    assert HttpStorage().read(f"{server.address}?sig=ok") == DATA


def test_a_redirect_is_followed(server: Server) -> None:
    server.trouble = ["elsewhere"]
    assert HttpStorage().read(f"{server.address}?sig=first", offset=7, length=5) == DATA[7:12]


def test_a_server_that_hangs_is_given_up_after_the_second_time(server: Server) -> None:
    server.trouble = ["hang"] * 6
    storage = HttpStorage(client=httpx.Client(timeout=0.2))
    with pytest.raises(StorageError, match="timed out, after 2 attempts"):
        storage.read(f"{server.address}?sig=ok")
    assert len(server.asked) == 2


def test_trouble_that_stays(server: Server) -> None:
    server.trouble = [503] * 50
    with pytest.raises(StorageError, match="status 503, after 6 attempts") as told:
        HttpStorage().read(f"{server.address}?sig=local-secret")
    assert "local-secret" not in str(told.value)


def test_a_file_that_is_not_there(server: Server) -> None:
    with pytest.raises(FileMissingError, match="no such file"):
        HttpStorage().read(server.address.replace("file.parquet", "gone") + "?sig=ok")


def test_reads_are_bounded(server: Server) -> None:
    with pytest.raises(TooLargeError):
        HttpStorage().read(f"{server.address}?sig=ok", limit=1000)
    with pytest.raises(TooLargeError):
        HttpStorage().read(f"{server.address}?sig=ok", length=2000, limit=1000)
    assert HttpStorage().read(f"{server.address}?sig=ok", length=1000, limit=1000) == DATA[:1000]


def test_no_server_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_storage, "_FIRST_WAIT", 0.001)
    with pytest.raises(StorageError, match=r"Cannot read http://127.0.0.1:1/x"):
        HttpStorage().read("http://127.0.0.1:1/x?sig=local-secret")


def renew_by_name(path: str) -> str:
    return path


def test_pickles_and_lists_nothing() -> None:
    storage = pickle.loads(pickle.dumps(HttpStorage(renew_by_name)))
    assert storage._renew is renew_by_name
    with pytest.raises(StorageError, match="lists nothing"):
        storage.list("https://host/dir?sig=local-secret")
