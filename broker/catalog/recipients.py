"""Changes to who reads: recipients, their tokens and activation links, and their grants.

A token is random, shown once and kept as a hash. A rotation issues a new one and lets the old ones live on
for a grace period; a revocation counts from the next request on, everywhere, because every request asks the
database.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from sqlalchemy import Engine, delete, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from lakepass.broker.authentication import HashedSecret, new_secret
from lakepass.broker.catalog.models import Activation, Grant, Recipient, Share, Token, now_ms
from lakepass.broker.catalog.names import check_name, name_key
from lakepass.broker.errors import Conflict, InvalidParameter, NotFound


@dataclass(frozen=True)
class IssuedToken:
    """A new token: the only moment its text is known."""

    id: str
    recipient: str
    secret: str = field(repr=False)
    expires_at: int | None


@dataclass(frozen=True)
class IssuedActivation:
    """A new activation code, to be sent to the recipient as a link."""

    recipient: str
    code: str | None = field(repr=False)
    """None when only its hash is known here."""
    expires_at: int


class Recipients:
    """Recipients, tokens, activation links and grants, for administration."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def _session(self) -> Session:
        return Session(self._engine, expire_on_commit=False)

    def add(self, name: str, *, comment: str | None = None, source_ranges: Sequence[str] = ()) -> Recipient:
        """Create a recipient; `source_ranges` limits where vended credentials can be used from."""
        try:
            check_name(name, dots=True)
            ranges = [str(ipaddress.ip_network(text, strict=False)) for text in source_ranges]
        except ValueError as error:
            raise InvalidParameter(str(error)) from None
        recipient = Recipient(name=name, name_key=name_key(name), comment=comment, source_ranges=ranges)
        try:
            with self._session() as session, session.begin():
                session.add(recipient)
        except IntegrityError:
            raise Conflict(f"A recipient named {name!r} exists already.") from None
        return recipient

    def all(self) -> list[Recipient]:
        """Every recipient, by name."""
        with self._session() as session:
            return list(session.scalars(select(Recipient).order_by(Recipient.name_key)))

    def find(self, name: str) -> Recipient:
        """A recipient by name."""
        with self._session() as session:
            return _recipient(session, name)

    def remove(self, name: str) -> None:
        """Delete a recipient with tokens and grants: nothing they hold opens anything from now on."""
        with self._session() as session, session.begin():
            recipient = _recipient(session, name)
            if recipient.from_file:
                raise Conflict(f"{recipient.name!r} comes from the configuration file; change it there.")
            session.delete(recipient)

    def issue_token(self, name: str, lifetime: timedelta | None = None) -> IssuedToken:
        """A new token beside those that live already."""
        with self._session() as session, session.begin():
            return _issue(session, _recipient(session, name), lifetime)

    def adopt_token(self, name: str, digest: str) -> None:
        """Accept a token that was made elsewhere and of which only the SHA-256 is known."""
        with self._session() as session, session.begin():
            recipient = _recipient(session, name)
            known = session.scalar(select(Token).where(Token.selector == digest[:16]))
            if known is None:
                session.add(Token(recipient_id=recipient.id, selector=digest[:16], digest=digest))

    def rotate_token(self, name: str, lifetime: timedelta | None, grace: timedelta) -> IssuedToken:
        """A new token; every other one ends after `grace` at the latest."""
        if grace < timedelta(0):
            raise InvalidParameter("A grace period is not negative.")
        with self._session() as session, session.begin():
            recipient = _recipient(session, name)
            end = now_ms() + int(grace.total_seconds() * 1000)
            session.execute(
                update(Token)
                .where(
                    Token.recipient_id == recipient.id,
                    Token.revoked_at.is_(None),
                    or_(Token.expires_at.is_(None), Token.expires_at > end),
                )
                .values(expires_at=end)
            )
            return _issue(session, recipient, lifetime)

    def tokens(self, name: str | None = None) -> list[tuple[Token, str]]:
        """Tokens with their recipients' names, newest last."""
        statement = (
            select(Token, Recipient.name).join(Recipient).order_by(Recipient.name_key, Token.created_at)
        )
        with self._session() as session:
            if name is not None:
                statement = statement.where(Recipient.id == _recipient(session, name).id)
            return [(token, owner) for token, owner in session.execute(statement)]

    def revoke_token(self, token_id: str) -> None:
        """End one token now."""
        with self._session() as session, session.begin():
            token = session.get(Token, token_id)
            if token is None:
                raise NotFound(f"There is no token {token_id!r}.")
            token.revoked_at = token.revoked_at or now_ms()

    def revoke_all_tokens(self, name: str) -> int:
        """End every token of a recipient now; gives how many there were."""
        with self._session() as session, session.begin():
            recipient = _recipient(session, name)
            live = session.scalars(
                select(Token).where(Token.recipient_id == recipient.id, Token.revoked_at.is_(None))
            ).all()
            for token in live:
                token.revoked_at = now_ms()
            return len(live)

    def add_activation(
        self,
        name: str,
        lifetime: timedelta,
        token_lifetime: timedelta | None = None,
        digest: str | None = None,
    ) -> IssuedActivation:
        """A code that can be turned into a token once, until `lifetime` is over.

        A deployment that must know the link beforehand keeps the code and gives its SHA-256.
        """
        if lifetime <= timedelta(0):
            raise InvalidParameter("An activation link needs a lifetime above zero.")
        if digest is not None and not re.fullmatch("[0-9a-f]{64}", digest):
            raise InvalidParameter("An activation code's SHA-256 is 64 hexadecimal digits in lower case.")
        code = new_secret() if digest is None else None
        hashed = HashedSecret.of(code) if code is not None else HashedSecret(str(digest)[:16], str(digest))
        try:
            with self._session() as session, session.begin():
                recipient = _recipient(session, name)
                expires_at = now_ms() + int(lifetime.total_seconds() * 1000)
                session.add(
                    Activation(
                        recipient_id=recipient.id,
                        selector=hashed.selector,
                        digest=hashed.digest,
                        expires_at=expires_at,
                        token_lifetime_ms=_milliseconds(token_lifetime),
                    )
                )
        except IntegrityError:
            raise Conflict("This activation code was given before; make another.") from None
        return IssuedActivation(recipient.name, code, expires_at)

    def activate(self, code: str) -> IssuedToken:
        """Use an activation code: the token it gives, and never again."""
        hashed = HashedSecret.of(code)
        refused = NotFound(
            "This activation link does not exist, was used already, or has expired. Ask for a new one."
        )
        with self._session() as session, session.begin():
            activation = session.scalar(select(Activation).where(Activation.selector == hashed.selector))
            known = activation.digest if activation is not None else "0" * 64
            if not hmac.compare_digest(known, hashed.digest) or activation is None:
                raise refused
            now = now_ms()
            used = session.execute(
                update(Activation)
                .where(
                    Activation.id == activation.id, Activation.used_at.is_(None), Activation.expires_at > now
                )
                .values(used_at=now)
                .returning(Activation.id)
            ).first()
            if used is None:
                raise refused
            recipient = session.get_one(Recipient, activation.recipient_id)
            milliseconds = activation.token_lifetime_ms
            return _issue(session, recipient, timedelta(milliseconds=milliseconds) if milliseconds else None)

    def grant(self, name: str, share: str) -> None:
        """Let a recipient read a share; granting twice is the same as once, at the same time as well."""
        try:
            self._grant(name, share)
        except IntegrityError:
            self._grant(name, share)

    def _grant(self, name: str, share: str) -> None:
        with self._session() as session, session.begin():
            recipient, found = _recipient(session, name), _share(session, share)
            if session.get(Grant, (recipient.id, found.id)) is None:
                session.add(Grant(recipient_id=recipient.id, share_id=found.id))

    def revoke_grant(self, name: str, share: str) -> None:
        """Withdraw a grant, from the next request on."""
        with self._session() as session, session.begin():
            recipient, found = _recipient(session, name), _share(session, share)
            grant = session.get(Grant, (recipient.id, found.id))
            if grant is None:
                raise NotFound(f"{recipient.name!r} has no grant on {found.name!r}.")
            session.execute(
                delete(Grant).where(Grant.recipient_id == recipient.id, Grant.share_id == found.id)
            )

    def grants(self, name: str | None = None, share: str | None = None) -> list[tuple[str, str, int]]:
        """Recipient, share and time of each grant."""
        statement = (
            select(Recipient.name, Share.name, Grant.created_at)
            .join(Recipient, Recipient.id == Grant.recipient_id)
            .join(Share, Share.id == Grant.share_id)
            .order_by(Recipient.name_key, Share.name_key)
        )
        with self._session() as session:
            if name is not None:
                statement = statement.where(Recipient.id == _recipient(session, name).id)
            if share is not None:
                statement = statement.where(Share.id == _share(session, share).id)
            return [(who, what, at) for who, what, at in session.execute(statement)]


def _recipient(session: Session, name: str) -> Recipient:
    recipient = session.scalar(select(Recipient).where(Recipient.name_key == name_key(name)))
    if recipient is None:
        raise NotFound(f"There is no recipient {name!r}.")
    return recipient


def _share(session: Session, name: str) -> Share:
    share = session.scalar(select(Share).where(Share.name_key == name_key(name)))
    if share is None:
        raise NotFound(f"There is no share {name!r}.")
    return share


def _issue(session: Session, recipient: Recipient, lifetime: timedelta | None) -> IssuedToken:
    if lifetime is not None and lifetime <= timedelta(0):
        raise InvalidParameter("A token needs a lifetime above zero.")
    secret = new_secret()
    hashed = HashedSecret.of(secret)
    milliseconds = _milliseconds(lifetime)
    token = Token(
        recipient_id=recipient.id,
        selector=hashed.selector,
        digest=hashed.digest,
        expires_at=None if milliseconds is None else now_ms() + milliseconds,
    )
    session.add(token)
    session.flush()
    return IssuedToken(token.id, recipient.name, secret, token.expires_at)


def _milliseconds(span: timedelta | None) -> int | None:
    return None if span is None else int(span.total_seconds() * 1000)
