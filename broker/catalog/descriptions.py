"""The catalog's things as JSON, for the admin API and for `--json` of the command line. Never a secret."""

from __future__ import annotations

from typing import Any

from lakepass.broker.catalog.models import Recipient, Schema, Share, SharedTable, Token, now_ms


def described_share(share: Share) -> dict[str, Any]:
    """A share."""
    return {
        "name": share.name,
        "id": share.id,
        "displayName": share.display_name,
        "comment": share.comment,
        "properties": share.properties,
        "fromFile": share.from_file,
        "createdAt": share.created_at,
    }


def described_table(share: Share, schema: Schema, table: SharedTable) -> dict[str, Any]:
    """A table and where it is."""
    return {
        "share": share.name,
        "schema": schema.name,
        "name": table.name,
        "id": table.id,
        "location": table.location,
        "auxiliaryLocations": table.auxiliary_locations,
        "accessModes": table.access_modes,
        "historyShared": table.history_shared,
        "startVersion": table.start_version,
        "comment": table.comment,
        "createdAt": table.created_at,
    }


def described_recipient(recipient: Recipient) -> dict[str, Any]:
    """A recipient."""
    return {
        "name": recipient.name,
        "id": recipient.id,
        "comment": recipient.comment,
        "sourceRanges": recipient.source_ranges,
        "fromFile": recipient.from_file,
        "createdAt": recipient.created_at,
    }


def described_token(token: Token, recipient: str) -> dict[str, Any]:
    """A token without its secret."""
    return {
        "id": token.id,
        "recipient": recipient,
        "status": token_status(token),
        "createdAt": token.created_at,
        "expiresAt": token.expires_at,
        "revokedAt": token.revoked_at,
    }


def token_status(token: Token) -> str:
    """`live`, `expired` or `revoked`."""
    if token.revoked_at is not None:
        return "revoked"
    return "expired" if token.expires_at is not None and token.expires_at <= now_ms() else "live"
