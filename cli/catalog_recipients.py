"""`lakepass recipient …`, `lakepass token …` and `lakepass grant …`."""

from __future__ import annotations

import contextlib
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakepass.cli.broker_setup import ConfigOption, load_settings, open_catalog
from lakepass.cli.catalog_output import (
    IfAbsentOption,
    JsonOption,
    YesOption,
    confirm,
    done,
    moment,
    print_items,
    print_json,
)

if TYPE_CHECKING:
    from lakepass.broker.catalog.recipients import IssuedToken
    from lakepass.broker.config import Settings

_RECIPIENTS = typer.Typer(help="Recipients: who reads what is shared.", no_args_is_help=True)
_TOKENS = typer.Typer(help="Tokens: what recipients prove themselves with.", no_args_is_help=True)
_GRANTS = typer.Typer(help="Grants: which recipient reads which share.", no_args_is_help=True)

Lifetime = Annotated[str | None, typer.Option(help="Such as 90d; without it, the token does not end.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Write the profile file here.")]
LinkLifetime = Annotated[str, typer.Option(help="How long the link can be used.")]


@_RECIPIENTS.command("list")
def _list(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """All recipients."""
    settings = load_settings(config)
    from lakepass.broker.catalog.descriptions import described_recipient

    items = [described_recipient(recipient) for recipient in open_catalog(settings).recipients.all()]
    columns = [
        ("RECIPIENT", "name"),
        ("COMMENT", "comment"),
        ("ADDRESSES", "sourceRanges"),
        ("CREATED", "createdAt"),
    ]
    print_items(items, columns, as_json=as_json)


@_RECIPIENTS.command("add")
def _add(
    name: str,
    comment: Annotated[str | None, typer.Option(help="For the catalog's own use.")] = None,
    source_range: Annotated[
        list[str] | None, typer.Option(help="Addresses it may call from, such as 10.0.0.0/8; repeatable.")
    ] = None,
    share: Annotated[
        list[str] | None, typer.Option("--share", help="Grant this share as well; repeatable.")
    ] = None,
    config: ConfigOption = None,
    *,
    link_lifetime: LinkLifetime = "7d",
    token_lifetime: Lifetime = None,
    activation_sha256: Annotated[
        str | None,
        typer.Option(help="SHA-256 of the link's code, for a deployment that makes the code itself."),
    ] = None,
    if_absent: IfAbsentOption = False,
    as_json: JsonOption = False,
) -> None:
    """Create a recipient and print a link that gives it the profile file, once."""
    settings = load_settings(config)
    from lakepass.broker.errors import Conflict

    recipients = open_catalog(settings).recipients
    try:
        recipients.add(name, comment=comment, source_ranges=source_range or ())
    except Conflict:
        if not if_absent:
            raise
        done(f"The recipient {name} is there already.")
        if activation_sha256 is None:
            return
        # Whoever made it may have stopped before the link; a code given before is refused, used or not.
        with contextlib.suppress(Conflict):
            _print_link(settings, name, link_lifetime, token_lifetime, activation_sha256, as_json=as_json)
        return
    for each in share or ():
        recipients.grant(name, each)
    _print_link(settings, name, link_lifetime, token_lifetime, activation_sha256, as_json=as_json)


@_RECIPIENTS.command("link")
def _link(
    name: str,
    config: ConfigOption = None,
    *,
    link_lifetime: LinkLifetime = "7d",
    token_lifetime: Lifetime = None,
    as_json: JsonOption = False,
) -> None:
    """Print a new activation link for a recipient: one use, then it is gone."""
    _print_link(load_settings(config), name, link_lifetime, token_lifetime, as_json=as_json)


@_RECIPIENTS.command("remove")
def _remove(name: str, config: ConfigOption = None, yes: YesOption = False) -> None:
    """Delete a recipient with its tokens and grants."""
    recipients = open_catalog(load_settings(config)).recipients
    recipients.find(name)
    confirm(f"Delete the recipient {name}? Its tokens stop working at once.", yes=yes)
    recipients.remove(name)
    done(f"The recipient {name} is gone.")


@_TOKENS.command("list")
def _list_tokens(
    recipient: Annotated[str | None, typer.Argument(help="Only of this recipient.")] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """All tokens, without their secrets."""
    settings = load_settings(config)
    from lakepass.broker.catalog.descriptions import described_token

    items = [described_token(*row) for row in open_catalog(settings).recipients.tokens(recipient)]
    columns = [
        ("RECIPIENT", "recipient"), ("TOKEN", "id"), ("STATUS", "status"),
        ("CREATED", "createdAt"), ("EXPIRES", "expiresAt"),
    ]  # fmt: skip
    print_items(items, columns, as_json=as_json)


@_TOKENS.command("issue")
def _issue(
    recipient: str, lifetime: Lifetime = None, output: Output = None, config: ConfigOption = None
) -> None:
    """A new token in a profile file, printed or written with --output; it is shown this once."""
    settings = load_settings(config)
    token = open_catalog(settings).recipients.issue_token(recipient, _span(lifetime))
    _give_profile(settings, token, output)


@_TOKENS.command("rotate")
def _rotate(
    recipient: str,
    lifetime: Lifetime = None,
    grace: Annotated[str, typer.Option(help="How long the old tokens still work.")] = "1d",
    output: Output = None,
    config: ConfigOption = None,
) -> None:
    """A new token in a profile file; the old ones end after the grace period."""
    settings = load_settings(config)
    token = open_catalog(settings).recipients.rotate_token(
        recipient, _span(lifetime), _span(grace) or timedelta(0)
    )
    _give_profile(settings, token, output)


@_TOKENS.command("revoke")
def _revoke(
    token: Annotated[str | None, typer.Argument(help="The token's id, from `lakepass token list`.")] = None,
    all_of: Annotated[str | None, typer.Option("--all-of", help="Every token of this recipient.")] = None,
    config: ConfigOption = None,
    yes: YesOption = False,
) -> None:
    """End a token now; credentials already handed out live until they expire."""
    if (token is None) == (all_of is None):
        raise typer.BadParameter("Name a token, or a recipient with --all-of.")
    recipients = open_catalog(load_settings(config)).recipients
    if all_of is not None:
        confirm(f"Revoke every token of {all_of}?", yes=yes)
        done(f"{recipients.revoke_all_tokens(all_of)} tokens revoked.")
    elif token is not None:
        confirm(f"Revoke the token {token}?", yes=yes)
        recipients.revoke_token(token)
        done("The token is revoked.")


@_GRANTS.command("list")
def _list_grants(
    recipient: Annotated[str | None, typer.Option(help="Only of this recipient.")] = None,
    share: Annotated[str | None, typer.Option(help="Only on this share.")] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Who reads what."""
    found = open_catalog(load_settings(config)).recipients.grants(recipient, share)
    items = [{"recipient": who, "share": what, "grantedAt": at} for who, what, at in found]
    columns = [("RECIPIENT", "recipient"), ("SHARE", "share"), ("GRANTED", "grantedAt")]
    print_items(items, columns, as_json=as_json)


@_GRANTS.command("add")
def _add_grant(
    recipient: str, share: str, config: ConfigOption = None, if_absent: IfAbsentOption = False
) -> None:
    """Let a recipient read a share; granting twice is the same as once."""
    del if_absent
    open_catalog(load_settings(config)).recipients.grant(recipient, share)
    done(f"{recipient} reads {share}.")


@_GRANTS.command("remove")
def _remove_grant(recipient: str, share: str, config: ConfigOption = None, yes: YesOption = False) -> None:
    """Withdraw a grant; it counts from the next request on."""
    confirm(f"Withdraw {share} from {recipient}?", yes=yes)
    open_catalog(load_settings(config)).recipients.revoke_grant(recipient, share)
    done(f"{recipient} no longer reads {share}.")


def _span(text: str | None) -> timedelta | None:
    from lakepass.broker.config import parse_duration

    if text is None:
        return None
    try:
        span = parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r}: {error}") from None
    assert isinstance(span, timedelta)
    return span


def _origin(settings: Settings) -> str:
    server = settings.server
    return (server.public_url or f"http://{server.host}:{server.port}").rstrip("/")


def _print_link(
    settings: Settings,
    name: str,
    link_lifetime: str,
    token_lifetime: str | None,
    digest: str | None = None,
    *,
    as_json: bool,
) -> None:
    made = open_catalog(settings).recipients.add_activation(
        name, _span(link_lifetime) or timedelta(days=7), _span(token_lifetime), digest
    )
    if made.code is None:
        done(f"Whoever has the code can activate {made.recipient} once, until {moment(made.expires_at)}.")
        return
    url = f"{_origin(settings)}/activate/{made.code}"
    if as_json:
        print_json({"recipient": made.recipient, "url": url, "expiresAt": made.expires_at})
        return
    done(f"Send this link to {made.recipient}; it works once, until {moment(made.expires_at)}:")
    typer.echo(url)


def _give_profile(settings: Settings, token: IssuedToken, output: Path | None) -> None:
    content: dict[str, Any] = {
        "shareCredentialsVersion": 1,
        "endpoint": f"{_origin(settings)}{settings.server.prefix}/",
        "bearerToken": token.secret,
    }
    if token.expires_at is not None:
        ends = datetime.fromtimestamp(token.expires_at / 1000, UTC)
        content["expirationTime"] = ends.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if output is None:
        print_json(content)
        return
    import json

    # Readable by its owner only, from the first byte on.
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=2)
    done(f"The profile of {token.recipient} is in {output}.")


def register(app: typer.Typer) -> None:
    """Add this module's commands to `app`."""
    app.add_typer(_RECIPIENTS, name="recipient", rich_help_panel="Providers")
    app.add_typer(_TOKENS, name="token", rich_help_panel="Providers")
    app.add_typer(_GRANTS, name="grant", rich_help_panel="Providers")
