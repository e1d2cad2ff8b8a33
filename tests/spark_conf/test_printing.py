"""`lakepass spark-conf`: settings as text, secrets only when asked for."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from lakepass.cli.main import app
from tests.clouds.ministack import Ministack
from tests.spark_conf.scene import Scene, running_scene

run = CliRunner().invoke


@pytest.fixture(scope="module")
def scene(ministack: Ministack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with running_scene(ministack, tmp_path_factory.mktemp("printing"), ["plain"]) as running:
        yield running


def token(scene: Scene) -> str:
    return str(json.loads(scene.profile.read_text())["bearerToken"])


def test_properties_are_explained_and_hide_secrets(scene: Scene) -> None:
    answer = run(app, ["spark-conf", scene.reference("plain")])
    assert answer.exit_code == 0
    assert f'load("s3a://{scene.bucket}/tables/plain/delta")' in answer.output
    assert "# the broker that renews the credential\nspark.hadoop.fs.unitycatalog.uri http" in answer.output
    assert "spark.hadoop.fs.unitycatalog.auth.token HIDDEN" in answer.output
    assert token(scene) not in answer.output


def test_secrets_are_printed_when_asked_for(scene: Scene) -> None:
    arguments = ["spark-conf", scene.reference("plain"), "--format", "json", "--show-secrets"]
    conf = json.loads(run(app, arguments).output)
    assert conf["spark.hadoop.fs.unitycatalog.auth.token"] == token(scene)


@pytest.mark.filterwarnings("ignore::lakepass.spark_conf.StaticCredentialWarning")
def test_static_settings_hide_the_credential(scene: Scene) -> None:
    conf = json.loads(
        run(app, ["spark-conf", scene.reference("plain"), "--static", "--format", "json"]).output
    )
    bucket = f"spark.hadoop.fs.s3a.bucket.{scene.bucket}"
    for key in ("access.key", "secret.key", "session.token"):
        assert conf[f"{bucket}.{key}"] == "HIDDEN"
    assert not [key for key in conf if "unitycatalog" in key]


def test_a_table_by_url_has_no_settings(scene: Scene) -> None:
    answer = run(app, ["spark-conf", scene.reference("plain", "url")])
    assert answer.exit_code != 0
    assert "not shared by directory" in str(answer.exception)


def test_a_session_as_arguments_of_spark_submit() -> None:
    words = shlex.split(run(app, ["spark-conf", "--session", "--format", "submit", "--cloud", "gcp"]).output)
    assert words[::2] == ["--conf"] * (len(words) // 2)
    assert any(word.startswith("spark.jars.packages=io.delta:") and "gcs-connector" in word for word in words)


@pytest.mark.parametrize("arguments", [[], ["--session", "p#s.x.t"]])
def test_a_table_or_a_session(arguments: list[str]) -> None:
    assert run(app, ["spark-conf", *arguments]).exit_code == 2
