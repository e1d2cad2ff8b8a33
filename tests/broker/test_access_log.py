"""The access log of a running broker, as text and as JSON; and that refusals reach a browser that may ask."""

from __future__ import annotations

import json

import pytest

from tests.broker.server import RunningBroker, running_broker


def _lines(broker: RunningBroker, request_id: str) -> list[str]:
    return [line for line in broker.log().splitlines() if request_id in line]


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_each_request_has_one_line_with_its_id(log_format: str) -> None:
    origin = "https://notebook.example"
    with running_broker(server={"log_format": log_format, "cors_origins": [origin]}) as broker:
        profile = broker.recipient("ann")
        with broker.client(profile) as client:
            listed = client.get("/shares", headers={"X-Request-Id": "listing", "Origin": origin})
            refused = client.get("/shares/none", headers={"X-Request-Id": "refused", "Origin": origin})
            # A line feed and an escape sequence: neither may make a line of its own, nor reach a terminal.
            client.get("/shares/a%0A2026 forged%1B[2J", headers={"X-Request-Id": "forged"})
            client.delete("/shares", headers={"X-Request-Id": "not-direct"})
        assert listed.json() == {"items": []}
        assert refused.status_code == 404
        # Also where a request is refused, a browser lets its page see why.
        assert {answer.headers["access-control-allow-origin"] for answer in (listed, refused)} == {origin}
        broker.server.wait_until(lambda: bool(_lines(broker, "not-direct")))
        found = {name: _lines(broker, name) for name in ("listing", "refused", "forged", "not-direct")}
        assert [len(lines) for lines in found.values()] == [1, 1, 1, 1]
        assert not any(line.startswith("2026 forged") for line in broker.log().splitlines())
        assert "\x1b" not in broker.log()
        assert profile["bearerToken"] not in broker.log()
        if log_format == "json":
            told = {name: json.loads(line) for name, (line,) in found.items()}
            assert (
                told["listing"].items()
                >= {
                    "level": "info",
                    "logger": "lakepass.access",
                    "request_id": "listing",
                    "method": "GET",
                    "path": "/delta-sharing/shares",
                    "status": 200,
                    "recipient": "ann",
                    "address": "127.0.0.1",
                }.items()
            )
            assert told["listing"]["milliseconds"] > 0
            assert told["not-direct"]["status"] == 405
        else:
            assert " info    listing GET /delta-sharing/shares 200 " in found["listing"][0]
