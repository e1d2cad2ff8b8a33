"""Hostile requests: made from the OpenAPI document by schemathesis, and by hand. None may give a 500.

    python -m tests.broker.hostile --requests 100000

runs long, as `make soak` does; the tests run a short part of the same.
"""

from __future__ import annotations

import argparse
import random
import socket
from collections import Counter
from typing import Any

import hypothesis
import schemathesis
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

from tests.broker.lake import Lake, running_lake
from tests.broker.server import ADMIN_TOKEN
from tests.clouds import ministack
from tests.clouds.run import running

_TEXTS = [
    "", " ", "%", "%00", "%2e%2e", "..", "\u0000", "\ud7ff", "é" * 100, "x" * 5000,
    "'; DROP TABLE shares; --", "null", "true", "-1", "0", "1e999", "NaN", "9" * 400, "٣",
    "${jndi:ldap://x}", "{{7*7}}", "<script>",
    "a\r\nSet-Cookie: x",
]  # fmt: skip
_VALUES: list[Any] = [
    *_TEXTS, None, True, False, 0, -1, 2**31, 2**63 - 1, 1.5, [], {}, [[]], {"a": {}}, ["x"] * 50,
]  # fmt: skip
_FIELDS = [
    "predicateHints", "jsonPredicateHints", "limitHint", "version", "timestamp", "startingVersion",
    "endingVersion", "maxFiles", "pageToken", "includeRefreshToken", "refreshToken",
    "includeHistoricalProtocol", "idempotencyKey", "location", "unknown",
]  # fmt: skip
_FORMATS = [
    "responseformat=delta;readerfeatures=deletionvectors,columnmapping",
    "responseformat=",
    ";;=;,",
    "x" * 999,
]
_CALLS = ["", "/version", "/metadata", "/query", "/changes", "/queries/x", "/temporary-table-credentials"]
_POSTED = ("/query", "/queries/x", "/temporary-table-credentials")
_RAW = [
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET  HTTP/1.1\r\nHost: x\r\n\r\n",
    b"\x00\x01\x02\x03\r\n\r\n",
    b"POST /delta-sharing/shares HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    b"POST /delta-sharing/shares HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n{}",
    b"POST /delta-sharing/shares HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
    b"GET /delta-sharing/shares HTTP/1.1\r\nHost: x\r\n" + b"X-A: b\r\n" * 5000 + b"\r\n",
    b"GET /delta-sharing/shares HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 200_000 + b"\r\n\r\n",
    b"GET /delta-sharing/" + b"s" * 70_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /delta-sharing/shares/%ff%fe/schemas HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \xff\r\n\r\n",
]


def generated(lake: Lake, count: int) -> Counter[int]:
    """Requests made from the OpenAPI document, about `count` in all; gives how often each status came."""
    schema = schemathesis.openapi.from_url(f"{lake.broker.origin}/openapi.json")
    statuses: Counter[int] = Counter()
    every: Any = schema.get_all_operations()
    operations = [found.ok() for found in every]
    # Hypothesis seeds `random` anew for every example, so what is chosen by chance is drawn from it as well.
    callers = st.sampled_from([lake.profile["bearerToken"]] * 5 + ["wrong"])
    known = st.sampled_from([True] * 3 + [False])
    real = {"share": "share", "schema": "tables", "table": "change_feed"}
    for operation in operations:
        if "/admin/" in operation.path and operation.method.upper() == "DELETE":
            continue

        @hypothesis.settings(
            max_examples=max(count // len(operations), 1),
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @hypothesis.given(case=operation.as_strategy(), token=callers, named=known)
        def call(case: Any, token: str, named: bool) -> None:
            if "/admin/" in case.path:
                token = ADMIN_TOKEN if token != "wrong" else token
            elif named and case.path_parameters:
                case.path_parameters = {**case.path_parameters, **_common(real, case.path_parameters)}
            answer = case.call(headers={"Authorization": f"Bearer {token}"}, timeout=60)
            statuses[answer.status_code] += 1
            assert answer.status_code < 500, (case.method, case.path, answer.status_code, answer.text)

        call()
    return statuses


def _common(values: dict[str, str], wanted: Any) -> dict[str, str]:
    return {name: value for name, value in values.items() if name in wanted}


def handmade(lake: Lake, count: int, seed: int = 7) -> Counter[int]:
    """Wrong values in every place of the table calls."""
    chance = random.Random(seed)
    statuses: Counter[int] = Counter()
    for _ in range(count):
        names = [chance.choice(["share", "tables", "plain", "change_feed", *_TEXTS]) for _ in range(3)]
        if chance.random() < 0.8:
            names = [
                "share",
                "tables",
                chance.choice(["plain", "change_feed", "deletion_vectors", "mapping_name"]),
            ]
        path = "/shares/{}/schemas/{}/tables/{}".format(*(_in_path(name) for name in names))
        call = chance.choice(_CALLS)
        fields = {chance.choice(_FIELDS): chance.choice(_VALUES) for _ in range(chance.randint(0, 4))}
        headers = {}
        if chance.random() < 0.4:
            headers["delta-sharing-capabilities"] = chance.choice(_FORMATS)
        if chance.random() < 0.2:
            headers["fileidhash"] = chance.choice(["parquet", "delta", "x"])
        method = "POST" if call in _POSTED else "GET"
        if chance.random() < 0.2:
            method = chance.choice(["GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"])
        if method == "POST":
            answer = lake.client.request(method, path + call, json=fields, headers=headers)
        else:
            query = {name: str(value)[:2000] for name, value in fields.items()}
            answer = lake.client.request(method, path + call, params=query, headers=headers)
        statuses[answer.status_code] += 1
        assert answer.status_code < 500, (method, path, call, fields, answer.text)
        if answer.status_code >= 400 and method != "HEAD":
            assert set(answer.json()) == {"errorCode", "message"}, answer.text
            assert "Traceback" not in answer.text
    return statuses


def raw(lake: Lake) -> None:
    """Bytes that are no proper HTTP; the server must live on."""
    address = ("127.0.0.1", lake.broker.settings.server.port)
    for request in _RAW:
        with socket.create_connection(address, timeout=10) as connection:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
            assert b" 500 " not in answer.split(b"\r\n", 1)[0]
    assert lake.client.get("/shares").status_code == 200


def _in_path(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="") or "-"


def main() -> None:
    """Run for long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    options = parser.parse_args()
    with running(ministack.start) as store, running_lake(store) as lake:
        raw(lake)
        print("by hand", dict(handmade(lake, options.requests // 2)))
        print("generated", dict(generated(lake, options.requests // 2)))


if __name__ == "__main__":
    main()
