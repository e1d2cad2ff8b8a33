from __future__ import annotations

import json
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from lakepass.reader.sharing.profile import Profile, ProfileError, ProfileWarning
from tests.reader.sharing.server import Server, as_json

V1 = {
    "shareCredentialsVersion": 1,
    "endpoint": "https://share.example.com/api/",
    "bearerToken": "s3cret-token",
}
V2 = {
    "shareCredentialsVersion": 2,
    "type": "oauth_client_credentials",
    "endpoint": "https://share.example.com/api",
    "tokenEndpoint": "https://login.example.com/token",
    "clientId": "me",
    "clientSecret": "s3cret-client",
    "scope": "read",
}


def write(path: Path, fields: dict[str, Any], mode: int = 0o600) -> Path:
    path.write_text(json.dumps(fields))
    path.chmod(mode)
    return path


def test_a_profile_is_read_from_a_path_a_dict_and_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "me.share", V1)
    monkeypatch.setenv("LAKEPASS_PROFILE", str(path))
    profiles = [Profile.load(path), Profile.load(str(path)), Profile.load(V1), Profile.load()]
    assert {one.endpoint for one in profiles} == {"https://share.example.com/api"}
    assert {one.bearer_token for one in profiles} == {"s3cret-token"}


def test_a_profile_is_fetched_from_an_address(server: Server) -> None:
    server.on("GET", "//me.share", as_json(V1))
    assert Profile.load(f"{server.origin}/me.share").bearer_token == "s3cret-token"
    assert "authorization" not in server.asked[0].headers


def test_a_profile_is_not_fetched_unencrypted_from_elsewhere() -> None:
    with pytest.raises(ProfileError, match="https"):
        Profile.load("http://share.example.com/me.share")


def test_version_two_holds_client_credentials() -> None:
    profile = Profile.load(V2)
    assert profile.oauth is not None
    assert (profile.oauth.client_id, profile.oauth.scope) == ("me", "read")


@pytest.mark.parametrize("version", [0, 3, "1", None, True])
def test_unknown_versions_are_refused_with_what_to_do(version: object) -> None:
    with pytest.raises(ProfileError, match="Upgrade lakepass"):
        Profile.load({**V1, "shareCredentialsVersion": version})


def test_an_expired_profile_is_refused_with_what_to_do() -> None:
    with pytest.raises(ProfileError, match=r"expired on 2021-11-12.*new"):
        Profile.load({**V1, "expirationTime": "2021-11-12T00:12:29.0Z"})
    assert Profile.load({**V1, "expirationTime": "9999-12-31T23:59:59Z"}).expires_at is not None


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"bearerToken": ""}, "lacks bearerToken"),
        ({"endpoint": "ftp://x"}, "not an https address"),
        ({"endpoint": "https://[::1/api"}, "not an address"),
        ({"endpoint": "https://host:port/api"}, "not an address"),
        ({"endpoint": "https://user:pw@x/"}, "plain address"),
        ({"expirationTime": "soon"}, "ISO 8601"),
    ],
)
def test_a_malformed_profile_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ProfileError, match=said):
        Profile.load({**V1, **fields})


def test_an_unknown_type_is_refused_by_name() -> None:
    with pytest.raises(ProfileError, match="carrier_pigeon"):
        Profile.load({**V2, "type": "carrier_pigeon"})


def test_missing_and_broken_files_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProfileError, match="no profile at"):
        Profile.load(tmp_path / "none.share")
    broken = tmp_path / "broken.share"
    broken.write_text("{")
    broken.chmod(0o600)
    with pytest.raises(ProfileError, match="not JSON"):
        Profile.load(broken)
    monkeypatch.delenv("LAKEPASS_PROFILE", raising=False)
    with pytest.raises(ProfileError, match="LAKEPASS_PROFILE"):
        Profile.load()


def test_a_profile_that_others_can_read_warns(tmp_path: Path) -> None:
    with pytest.warns(ProfileWarning, match="chmod 600"):
        Profile.load(write(tmp_path / "open.share", V1, 0o644))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Profile.load(write(tmp_path / "closed.share", V1, 0o600))


def test_no_secret_is_shown_or_pickled(tmp_path: Path) -> None:
    for profile in (Profile.load(V1), Profile.load(V2), Profile.load(write(tmp_path / "me.share", V1))):
        assert "s3cret" not in repr(profile)
        assert b"s3cret" not in pickle.dumps(profile)


def test_a_pickled_profile_is_read_again_where_it_arrives(tmp_path: Path) -> None:
    profile = Profile.load(write(tmp_path / "me.share", V1))
    program = "import pickle, sys; print(pickle.load(sys.stdin.buffer).bearer_token)"
    done = subprocess.run([sys.executable, "-c", program], input=pickle.dumps(profile), capture_output=True)
    assert done.stdout.strip() == b"s3cret-token", done.stderr


def test_a_dict_travels_only_where_the_environment_names_the_same_server(tmp_path: Path) -> None:
    pickled = pickle.dumps(Profile.load(V1))
    program = "import pickle, sys; print(pickle.load(sys.stdin.buffer).bearer_token)"
    lost = subprocess.run([sys.executable, "-c", program], input=pickled, capture_output=True, env={})
    assert b"secrets do not travel" in lost.stderr or b"secret does not travel" in lost.stderr
    path = write(tmp_path / "me.share", V1)
    found = subprocess.run(
        [sys.executable, "-c", program],
        input=pickled,
        capture_output=True,
        env={"LAKEPASS_PROFILE": str(path)},
    )
    assert found.stdout.strip() == b"s3cret-token", found.stderr
