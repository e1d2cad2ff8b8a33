"""A short part of the hostile requests of `make soak`, and the limits of a request."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator

import httpx
import pytest

from tests.broker.hostile import generated, handmade, raw
from tests.broker.lake import Lake


@pytest.mark.slow
def test_generated_requests_never_fail_the_server(lake: Lake) -> None:
    statuses = generated(lake, 300)
    assert sum(statuses.values()) > 100
    assert max(statuses) < 500


@pytest.mark.slow
def test_wrong_values_in_every_place_never_fail_the_server(lake: Lake) -> None:
    statuses = handmade(lake, 400)
    assert statuses[200]
    assert statuses[400]
    assert statuses[404]


def test_bytes_that_are_no_http_never_fail_the_server(lake: Lake) -> None:
    raw(lake)


def test_a_body_beyond_the_limit(lake: Lake) -> None:
    path = lake.broker.url + lake.path("plain", "/query")
    headers = {"Authorization": f"Bearer {lake.profile['bearerToken']}", "Content-Type": "application/json"}
    large = json.dumps({"predicateHints": ["x" * 2_000_000]}).encode()
    assert httpx.post(path, content=large, headers=headers).status_code == 413

    def pieces() -> Iterator[bytes]:  # sent in chunks, without a length
        yield from (large[start : start + 65536] for start in range(0, len(large), 65536))

    with contextlib.suppress(httpx.WriteError):  # the server may have seen enough and closed
        assert httpx.post(path, content=pieces(), headers=headers).status_code == 413
    assert lake.client.get("/shares").status_code == 200


def test_headers_beyond_the_limit(lake: Lake) -> None:
    answer = lake.client.get("/shares", headers={"X-Large": "x" * 40_000})
    assert answer.status_code == 431
    assert set(answer.json()) == {"errorCode", "message"}


@pytest.mark.parametrize(
    "path", ["/", "/nothing", "/delta-sharing", "/delta-sharing/shares/", "/delta-sharing//shares"]
)
def test_unknown_paths_answer_in_the_protocols_shape(lake: Lake, path: str) -> None:
    answer = httpx.get(lake.broker.origin + path)
    assert answer.status_code == 404
    assert set(answer.json()) == {"errorCode", "message"}
    wrong = httpx.delete(lake.broker.url + "/shares")
    assert wrong.status_code == 405
    assert wrong.json()["errorCode"] == "METHOD_NOT_ALLOWED"


def test_a_client_that_never_finishes_does_not_hold_the_others(lake: Lake) -> None:
    held = []
    for _ in range(50):
        connection = socket.create_connection(("127.0.0.1", lake.broker.settings.server.port))
        connection.sendall(
            b"POST /delta-sharing/shares/share/schemas/tables/tables/plain/query HTTP/1.1\r\nHost: x\r\n"
            b"Authorization: Bearer "
            + lake.profile["bearerToken"].encode()
            + b"\r\nContent-Length: 100\r\n\r\n{"
        )
        held.append(connection)
    assert lake.version("plain").status_code == 200
    assert lake.query("plain").status_code == 200
    for connection in held:
        connection.close()


def test_health_and_metrics(lake: Lake) -> None:
    assert httpx.get(f"{lake.broker.origin}/health/live").json() == {"status": "live"}
    assert httpx.get(f"{lake.broker.origin}/health/ready").json() == {"status": "ready"}
    lake.version("plain")
    metrics = httpx.get(f"{lake.broker.origin}/metrics").text
    assert 'route="/shares/{share}/schemas/{schema}/tables/{table}/version"' in metrics
    assert "plain" not in metrics
    assert lake.profile["bearerToken"] not in metrics


def test_cors_is_off(lake: Lake) -> None:
    answer = lake.client.get("/shares", headers={"Origin": "https://elsewhere.example"})
    assert "access-control-allow-origin" not in answer.headers
