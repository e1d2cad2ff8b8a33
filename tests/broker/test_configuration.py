"""Configuration: keys, environment, wrong keys named, and files of the reference server."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from lakepass.broker.catalog.importing import import_shares
from lakepass.broker.catalog.store import Catalog
from lakepass.broker.config import ConfigurationError, Settings
from lakepass.reader.location import Location
from tests.broker.server import running_broker

REFERENCE: dict[str, Any] = {
    "version": 1,
    "shares": [
        {
            "name": "share1",
            "schemas": [
                {
                    "name": "default",
                    "tables": [
                        {
                            "name": "table1",
                            "location": "s3a://lake/table1",
                            "id": "00000000-0000-4000-8000-000000000001",
                        },
                        {
                            "name": "table2",
                            "location": "s3a://lake/table2",
                            "historyShared": True,
                            "startVersion": 1,
                        },
                    ],
                }
            ],
        },
        {"name": "share2"},
    ],
    "authorization": {"bearerToken": "local-file-token"},
    "host": "localhost",
    "port": 8123,
    "endpoint": "/delta-sharing",
    "preSignedUrlTimeoutSeconds": 900,
    "deltaTableCacheSize": 10,
    "stalenessAcceptable": False,
    "evaluatePredicateHints": True,
}


def _load(folder: Path, content: Any) -> Settings:
    path = folder / "lakepass.yaml"
    path.write_text(yaml.safe_dump(content))
    return Settings.load(path)


def test_keys_as_in_the_design(tmp_path: Path) -> None:
    settings = _load(
        tmp_path,
        {
            "server": {
                "host": "0.0.0.0",
                "port": 9000,
                "prefix": "/share",
                "public_url": "https://x.example",
            },
            "database": "postgresql://user@host/name",
            "admin": {"token_sha256": "a" * 64},
            "credentials": {"lifetime": "30m"},
            "storage": [
                {
                    "location": "s3://lake/",
                    "aws": {"role_arn": "arn:aws:iam::123456789012:role/x", "region": "eu-west-1"},
                },
                {
                    "location": "s3://lake/deep/",
                    "aws": {"endpoint": "http://127.0.0.1:1", "path_style": True},
                },
                {"location": "abfss://data@account.dfs.core.windows.net/", "azure": {}},
                {"location": "gs://lake/", "gcp": {}},
            ],
        },
    )
    assert settings.credentials.lifetime == timedelta(minutes=30)
    entry = settings.storage_for(Location.parse("s3a://lake/deep/table"))
    assert entry is not None
    assert entry.aws is not None
    assert entry.aws.path_style
    assert settings.storage_for(Location.parse("s3://lakeevil/t")) is None


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ({"servr": {}}, "servr"),
        ({"server": {"prt": 1}}, "server.prt"),
        ({"server": {"port": "many"}}, "server.port"),
        ({"server": {"port": 70000}}, "server.port"),
        ({"server": {"prefix": "no-slash"}}, "server"),
        ({"database": "mysql://x"}, "database"),
        ({"credentials": {"lifetime": "soon"}}, "credentials.lifetime"),
        ({"credentials": {"lifetime": "13h"}}, "credentials.lifetime"),
        ({"admin": {"token_sha256": "short"}}, "admin.token_sha256"),
        ({"storage": [{"location": "s3://lake/", "gcp": {}}]}, "storage.0"),
        ({"storage": [{"location": "s3://lake/", "aws": {"rolearn": "x"}}]}, "storage.0.aws.rolearn"),
        ({"storage": [{"location": "/data", "aws": {}}]}, "storage.0"),
        ({"storage": [{"location": "s3://lake/", "aws": {}}] * 2}, "twice"),
        ({"shares": [{"name": "a b"}]}, "shares.0.name"),
        ([1], "keys"),
    ],
)
def test_a_wrong_key_is_named(tmp_path: Path, content: Any, named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        _load(tmp_path, content)


def test_the_environment_wins_and_its_mistakes_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEPASS_SERVER__PORT", "9999")
    monkeypatch.setenv("LAKEPASS_STORAGE", '[{"location": "s3://lake/", "aws": {"region": "eu-west-1"}}]')
    settings = _load(tmp_path, {"server": {"port": 1, "host": "0.0.0.0"}})
    assert (settings.server.port, settings.server.host) == (9999, "0.0.0.0")
    assert settings.storage[0].location == Location.parse("s3://lake/", allow_root=True)
    monkeypatch.setenv("LAKEPASS_SERVR__PORT", "1")
    with pytest.raises(ConfigurationError, match="LAKEPASS_SERVR__PORT"):
        Settings.load()
    monkeypatch.delenv("LAKEPASS_SERVR__PORT")
    monkeypatch.setenv("LAKEPASS_SERVER__PRT", "1")
    with pytest.raises(ConfigurationError, match="prt"):
        Settings.load()


def test_a_secret_is_not_in_the_settings_repr(tmp_path: Path) -> None:
    keys = {"access_key_id": "A", "secret_access_key": "local-secret"}
    settings = _load(tmp_path, {"storage": [{"location": "s3://lake/", "aws": keys}]})
    assert "local-secret" not in repr(settings)


def test_config_check(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("server: {port: 9000}\n")
    bad.write_text("servr: {port: 9000}\n")

    def check(path: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "lakepass.cli.main", "config", "check", "--config", str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    assert check(good).returncode == 0
    assert "valid" in check(good).stdout
    assert check(bad).returncode == 1
    assert "servr" in check(bad).stderr


def test_a_reference_servers_file_is_served_as_it_is(tmp_path: Path) -> None:
    settings = _load(tmp_path, REFERENCE)
    assert (settings.server.host, settings.server.port) == ("localhost", 8123)
    assert settings.server.url_lifetime == timedelta(minutes=15)
    assert settings.bearer_token_sha256 == hashlib.sha256(b"local-file-token").hexdigest()
    own = {"server": {"page_size": 7}, "database": "sqlite:///elsewhere.db"}
    mixed = _load(tmp_path, {**REFERENCE, **own})
    assert (mixed.server.port, mixed.server.page_size, mixed.database) == (8123, 7, "sqlite:///elsewhere.db")
    with pytest.raises(ConfigurationError, match="unknownKey"):
        _load(tmp_path, {**REFERENCE, "unknownKey": 1})
    with pytest.raises(ConfigurationError, match="ssl"):
        _load(tmp_path, {**REFERENCE, "ssl": {"selfSigned": True}})
    with pytest.raises(ConfigurationError, match="version"):
        _load(tmp_path, {**REFERENCE, "version": 2})
    with pytest.raises(ConfigurationError, match="refreshTokenTtlMs"):
        _load(tmp_path, {**REFERENCE, "refreshTokenTtlMs": "soon"})


def test_every_key_of_the_reference_server_is_understood(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    unset = {
        "deltaTableCacheSize": 10,
        "stalenessAcceptable": True,
        "evaluatePredicateHints": False,
        "evaluateJsonPredicateHints": True,
        "evaluateJsonPredicateHintsV2": True,
        "requestTimeoutSeconds": 30,
        "queryTablePageSizeLimit": 10000,
    }
    told = {"endpoint": "/share/", "queryTablePageTokenTtlMs": 259200000, "refreshTokenTtlMs": 1500}
    settings = _load(tmp_path, {**REFERENCE, **unset, **told, "ssl": None})
    assert settings.server.prefix == "/share"
    assert settings.server.page_token_lifetime == timedelta(days=3)
    assert settings.server.refresh_token_lifetime == timedelta(seconds=1.5)
    for key in unset:
        assert f"{key} of the reference server's file sets nothing here" in caplog.text


def _shares(*tables: dict[str, Any], second: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    """A file of the reference server with the tables of one share, and of a second."""
    named = (("one", tables), ("two", second))
    return {
        "version": 1,
        "shares": [
            {"name": name, "schemas": [{"name": "default", "tables": list(held)}]} for name, held in named
        ],
    }


def test_an_older_azure_location_of_the_file_is_the_newer_one(tmp_path: Path) -> None:
    table = {"name": "t", "location": "wasbs://c@account.blob.core.windows.net/a/t"}
    settings = _load(tmp_path, _shares(table))
    served = "abfss://c@account.dfs.core.windows.net/a/t"
    assert settings.shares[0].schemas[0].tables[0].location == served
    entry = settings.storage_for(Location.parse(served))
    assert entry is not None
    assert entry.azure is not None


def test_a_table_of_two_shares_keeps_its_id_in_the_first(tmp_path: Path) -> None:
    table = {"name": "t", "location": "s3a://lake/t", "id": "00000000-0000-4000-8000-000000000001"}
    unnamed = {"name": "u", "location": "s3a://lake/u", "id": ""}
    settings = _load(tmp_path, {
        **_shares(table, unnamed, second=(table, unnamed)), "database": f"sqlite:///{tmp_path / 'catalog.db'}"
    })  # fmt: skip
    catalog = Catalog(settings)
    catalog.lay_file_shares(settings)
    ids = {(share.name, row.name): row.id for share, _, row in catalog.shares.tables()}
    assert ids["one", "t"] == table["id"]
    assert len(set(ids.values())) == len(ids) == 4
    catalog.lay_file_shares(settings)
    assert ids == {(share.name, row.name): row.id for share, _, row in catalog.shares.tables()}
    catalog.close()


@pytest.mark.parametrize(
    "again", [{"name": "T", "location": "s3a://lake/u"}, {"name": "u", "location": "s3a://lake/u", "id": "1"}]
)
def test_a_name_or_an_id_that_comes_twice_is_refused(tmp_path: Path, again: dict[str, Any]) -> None:
    table = {"name": "t", "location": "s3a://lake/t", "id": "1"}
    with pytest.raises(ConfigurationError, match="comes twice"):
        _load(tmp_path, _shares(table, again))


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"authorization": "token"}, "authorization"),
        ({"authorization": {"bearerTokn": "token"}}, "authorization"),
        ({"authorization": {"bearerToken": None}}, "authorization"),
        ({"authorization": {"bearerToken": ""}}, "authorization"),
        ({"shares": "sales"}, "shares"),
        ({"shares": [1]}, "shares.0"),
        ({"shares": [{"name": "s", "schemas": [{"name": "d", "tables": [None]}]}]}, "schemas.0.tables.0"),
        ({"shares": [{"name": "s", "schemas": [{"name": "d", "tables": [{"name": "t"}]}]}]}, "location"),
    ],
)
def test_a_wrong_shape_in_a_reference_servers_file_is_named(
    tmp_path: Path, wrong: dict[str, Any], named: str
) -> None:
    with pytest.raises(ConfigurationError, match=named):
        _load(tmp_path, {**REFERENCE, **wrong})


def test_shares_of_the_file_are_served_and_follow_it(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'catalog.db'}"
    token = {"bearer_token_sha256": hashlib.sha256(b"local-file-token").hexdigest()}
    with running_broker(database=database, config={"shares": REFERENCE["shares"], **token}) as broker:
        with broker.client(broker.profile("local-file-token")) as client:
            first = client.get("/shares/share1/all-tables").json()["items"]
            assert [table["name"] for table in first] == ["table1", "table2"]
            assert first[0]["id"] == "00000000-0000-4000-8000-000000000001"
            assert [share["name"] for share in client.get("/shares").json()["items"]] == ["share1", "share2"]
        with broker.admin() as admin:
            assert admin.delete("/shares/share1").status_code == 409
        broker.catalog.recipients.add("ann")
        broker.catalog.recipients.grant("ann", "share1")
    fewer = [{"name": "share1", "schemas": [{"name": "default", "tables": [
        {"name": "table2", "location": "s3a://lake/elsewhere", "historyShared": True}]}]}]  # fmt: skip
    with running_broker(database=database, config={"shares": fewer, **token}) as broker:
        with broker.client(broker.profile("local-file-token")) as client:
            (again,) = client.get("/shares/share1/all-tables").json()["items"]
            assert again["id"] == first[1]["id"]
            assert client.get("/shares/share2").status_code == 404
        assert [(who, what) for who, what, _ in broker.catalog.recipients.grants("ann")] == [
            ("ann", "share1")
        ]


def test_a_reference_servers_file_is_imported(tmp_path: Path) -> None:
    source = _load(tmp_path, REFERENCE)
    catalog = Catalog(Settings(database=f"sqlite:///{tmp_path / 'catalog.db'}"))
    outcome = import_shares(catalog, source, "everyone")
    assert (outcome.shares, outcome.tables, outcome.present) == (2, 2, 0)
    assert import_shares(catalog, source, "everyone").present == 2
    assert [row[2].name for row in catalog.shares.tables()] == ["table1", "table2"]
    assert catalog.shares.table("share1", "default", "table2").start_version == 1
    assert not catalog.shares.find("share1").from_file
    assert len(catalog.recipients.tokens("everyone")) == 1
    catalog.shares.remove("share2")


def test_the_openapi_page_describes_every_route() -> None:
    with running_broker() as broker:
        document = httpx.get(f"{broker.origin}/openapi.json").json()
        assert httpx.get(f"{broker.origin}/docs").status_code == 200
    table = "/delta-sharing/shares/{share}/schemas/{schema}/tables/{table}"
    for path in (
        "",
        "/version",
        "/metadata",
        "/query",
        "/queries/{query_id}",
        "/changes",
        "/temporary-table-credentials",
    ):
        assert table + path in document["paths"]
    query = document["paths"][table + "/query"]["post"]["requestBody"]["content"]["application/json"][
        "schema"
    ]
    assert {"predicateHints", "startingVersion", "maxFiles", "refreshToken"} <= set(query["properties"])
