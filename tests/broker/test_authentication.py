"""Tokens: who gets in, and who no longer does."""

from __future__ import annotations

import hashlib
from datetime import timedelta

import pytest
from sqlalchemy import text

from tests.broker.server import RunningBroker


def _status(broker: RunningBroker, token: str) -> int:
    with broker.client(broker.profile(token)) as client:
        return client.get("/shares").status_code


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Basic abc", "Bearer wrong", "Bearer " + "x" * 9000, "Bearer \xff\xfe"],
)
def test_without_a_valid_token_nothing_is_shown(catalog_broker: RunningBroker, header: str | None) -> None:
    headers = {} if header is None else {b"Authorization": header.encode("latin-1")}
    with catalog_broker.client() as client:
        answer = client.get("/shares", headers=headers)
        assert answer.status_code == 401
        assert answer.json()["errorCode"] == "UNAUTHENTICATED"
        assert answer.headers["www-authenticate"] == "Bearer"
        head = client.head("/shares/a/schemas/b/tables/c", headers=headers)
        assert (head.status_code, head.content) == (401, b"")


def test_the_scheme_is_written_in_any_case(catalog_broker: RunningBroker) -> None:
    token = catalog_broker.recipient("dora")["bearerToken"]
    with catalog_broker.client() as client:
        assert client.get("/shares", headers={"Authorization": f"bearer {token}"}).status_code == 200


def test_a_token_ends_with_its_lifetime(catalog_broker: RunningBroker) -> None:
    recipients = catalog_broker.catalog.recipients
    recipients.add("eve")
    token = recipients.issue_token("eve", timedelta(hours=1))
    assert _status(catalog_broker, token.secret) == 200
    with catalog_broker.catalog.engine.begin() as connection:
        connection.execute(text("UPDATE tokens SET expires_at = 1 WHERE id = :id"), {"id": token.id})
    assert _status(catalog_broker, token.secret) == 401


def test_a_rotation_lets_the_old_token_live_through_the_grace_period(catalog_broker: RunningBroker) -> None:
    recipients = catalog_broker.catalog.recipients
    recipients.add("fred")
    old = recipients.issue_token("fred", None)
    new = recipients.rotate_token("fred", None, grace=timedelta(hours=1))
    assert _status(catalog_broker, old.secret) == _status(catalog_broker, new.secret) == 200
    last = recipients.rotate_token("fred", None, grace=timedelta(0))
    assert _status(catalog_broker, old.secret) == _status(catalog_broker, new.secret) == 401
    assert _status(catalog_broker, last.secret) == 200


def test_a_revocation_counts_from_the_next_request_on(catalog_broker: RunningBroker) -> None:
    recipients = catalog_broker.catalog.recipients
    recipients.add("gina")
    one, two = recipients.issue_token("gina"), recipients.issue_token("gina")
    recipients.revoke_token(one.id)
    assert (_status(catalog_broker, one.secret), _status(catalog_broker, two.secret)) == (401, 200)
    assert recipients.revoke_all_tokens("gina") == 1
    assert _status(catalog_broker, two.secret) == 401


def test_a_removed_recipient_holds_nothing(catalog_broker: RunningBroker) -> None:
    token = catalog_broker.recipient("hans")["bearerToken"]
    catalog_broker.catalog.recipients.remove("hans")
    assert _status(catalog_broker, token) == 401


def test_only_the_hash_of_a_token_is_kept(catalog_broker: RunningBroker) -> None:
    recipients = catalog_broker.catalog.recipients
    recipients.add("ida")
    token = recipients.issue_token("ida")
    assert token.secret not in repr(token)
    with catalog_broker.catalog.engine.connect() as connection:
        rows = connection.execute(text("SELECT * FROM tokens WHERE id = :id"), {"id": token.id}).all()
    assert token.secret not in str(rows)
    assert hashlib.sha256(token.secret.encode()).hexdigest() in str(rows)
    assert token.secret not in catalog_broker.log()


def test_a_recipient_may_be_held_to_its_own_addresses(catalog_broker: RunningBroker) -> None:
    recipients = catalog_broker.catalog.recipients
    recipients.add("jo", source_ranges=["10.1.0.0/16"])
    recipients.add("kim", source_ranges=["10.1.0.0/16", "127.0.0.0/8"])
    refused, allowed = recipients.issue_token("jo"), recipients.issue_token("kim")
    assert _status(catalog_broker, refused.secret) == 403
    assert _status(catalog_broker, allowed.secret) == 200
