"""Shared tables in Spark, on an S3 that enforces scopes: Delta's own reader and the data source."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # has no types
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lakepass.reader.errors import DeltaError
from lakepass.spark_conf import (
    StaticCredentialWarning,
    changes,
    create_views,
    read_options,
    read_table,
    register,
)
from lakepass.spark_conf.errors import SparkReadError
from tests.clouds.ministack import Ministack
from tests.spark_conf.comparing import sorted_rows
from tests.spark_conf.scene import SHARE, Scene, running_scene
from tests.tables.fixtures import fixture, names

pytestmark = pytest.mark.spark
WITH_CHANGES = [name for name in names() if "changes" in fixture(name).expected]


@pytest.fixture(scope="module")
def scene(ministack: Ministack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with running_scene(ministack, tmp_path_factory.mktemp("tables"), names()) as running:
        yield running


@pytest.fixture(scope="module")
def source(spark: SparkSession) -> SparkSession:
    register(spark)
    return spark


def native(source: SparkSession, reference: str, **options: object) -> DataFrame:
    return source.read.format("lakepass").options(**{k: str(v) for k, v in options.items()}).load(reference)


@pytest.mark.parametrize("name", names())
def test_both_ways_give_the_rows_that_spark_wrote(source: SparkSession, scene: Scene, name: str) -> None:
    table = scene.fixture(name)
    by_delta = read_table(source, scene.reference(name))
    by_source = native(source, scene.reference(name))
    assert sorted_rows(by_delta) == sorted_rows(table.rows())
    assert sorted_rows(by_source) == sorted_rows(table.rows())
    assert [(f.name, f.dataType) for f in by_source.schema] == [(f.name, f.dataType) for f in by_delta.schema]
    if table.earlier is not None:
        earlier = native(source, scene.reference(name), versionAsOf=table.earlier)
        assert sorted_rows(earlier) == sorted_rows(table.rows(table.earlier))


@pytest.mark.parametrize("name", WITH_CHANGES)
def test_changes(source: SparkSession, scene: Scene, name: str) -> None:
    table = scene.fixture(name)
    window = table.expected["changes"]
    # An object's time is when it was put there, unless commits state their own.
    kept = [field for field in table.changes().column_names if field != "_commit_timestamp"]
    expected = sorted_rows(table.changes().select(kept))
    for engine in ("native", "delta"):
        frame = changes(source, scene.reference(name), **window, engine=engine)
        assert sorted_rows(frame.select([f"`{field}`" for field in kept])) == expected


@pytest.mark.parametrize("name", ["plain", "mapping_deletion_vectors", "auxiliary"])
def test_a_table_offered_by_url(
    source: SparkSession, scene: Scene, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "lakepass.spark"):
        frame = read_table(source, scene.reference(name, "url"))
    assert sorted_rows(frame) == sorted_rows(scene.fixture(name).rows())
    assert "offered by URL" in caplog.text
    with pytest.raises(SparkReadError, match="Leave engine out"):
        read_table(source, scene.reference(name, "url"), engine="delta")


def test_auxiliary_locations_are_said(
    source: SparkSession, scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "lakepass.spark"):
        read_table(source, scene.reference("auxiliary"))
    assert "auxiliary locations" in caplog.text


def test_versions_and_times(source: SparkSession, scene: Scene) -> None:
    reference = scene.reference("in_commit_timestamps")
    rows = [sorted_rows(read_table(source, reference, version=version)) for version in (1, 2)]
    assert len(rows[0]) == 1
    assert len(rows[1]) == 2
    commit = scene.fixture("in_commit_timestamps").path / "_delta_log" / f"{2:020}.json"
    stamp = json.loads(commit.read_text().splitlines()[0])["commitInfo"]["inCommitTimestamp"]
    moment = datetime.fromtimestamp(stamp / 1000, UTC)
    for engine in ("delta", "native"):
        frame = read_table(source, reference, timestamp=moment, engine=engine)
        assert sorted_rows(frame) == rows[1]
    with pytest.raises(SparkReadError, match="not both"):
        read_table(source, reference, version=1, timestamp=moment)


def test_two_tables_of_one_bucket_in_one_query(source: SparkSession, scene: Scene) -> None:
    left = read_table(source, scene.reference("deletion_vectors"))
    right = read_table(source, scene.reference("nested"))
    joined = left.join(right.select("id", "tags"), "id")
    ids = set(scene.fixture("deletion_vectors").rows()["id"].to_pylist())
    expected = ids & set(scene.fixture("nested").rows()["id"].to_pylist())
    assert {row["id"] for row in joined.select("id").collect()} == expected


@pytest.mark.parametrize("renew", [True, False], ids=["renewing", "static"])
@pytest.mark.filterwarnings("ignore::lakepass.spark_conf.StaticCredentialWarning")
def test_the_options_of_one_table_do_not_open_another(
    source: SparkSession, scene: Scene, renew: bool
) -> None:
    path, options = read_options(scene.reference("plain"), renew=renew)
    assert source.read.format("delta").options(**options).load(path).count() == 96
    other = scene.location("nested").replace("s3://", "s3a://")
    with pytest.raises((PySparkException, Py4JJavaError), match=r"403|AccessDenied|Forbidden"):
        source.read.format("delta").options(**options).load(other).collect()
    with pytest.raises((PySparkException, Py4JJavaError), match=r"403|AccessDenied|Forbidden"):
        source.range(1).write.format("delta").options(**options).mode("append").save(f"{path}/_new")


def test_a_static_credential_is_warned_of(source: SparkSession, scene: Scene) -> None:
    with pytest.warns(StaticCredentialWarning, match=r"ends 20.*min\)"):
        frame = read_table(source, scene.reference("plain"), renew=False)
    assert frame.count() == 96


def test_columns_narrow_what_is_read(source: SparkSession, scene: Scene) -> None:
    reference = scene.reference("mapping_name")
    wanted = ["text, (renamed);={}", "id"]
    for engine in ("delta", "native"):
        frame = read_table(source, reference, columns=wanted, engine=engine)
        assert frame.columns == wanted
        assert sorted_rows(frame) == sorted_rows(scene.fixture("mapping_name").rows().select(wanted))
    narrowed = source.read.format("lakepass").schema("id INT").load(reference)
    assert sorted_rows(narrowed) == sorted_rows(scene.fixture("mapping_name").rows().select(["id"]))
    with pytest.raises(PySparkException, match="has no column 'nope'; it has id"):
        native(source, reference, columns="nope")


@pytest.mark.parametrize(
    "condition",
    [
        "id > 50",
        "id = 4 OR id = 5",
        "text = 'row 9'",
        "text IS NULL",
        "double > 5",
        "NOT (single < 3)",
        "day >= DATE'1970-01-05' AND flag",
        "moment < TIMESTAMP'1970-01-10 00:00:00'",
        "dec9 IN (5.00, 6.25)",
        "text LIKE 'ROW 1%'",
        "tiny <=> NULL",
        "big <> 7000000049",
    ],
)
def test_filters(source: SparkSession, scene: Scene, condition: str) -> None:
    expected = sorted_rows(read_table(source, scene.reference("plain")).where(condition))
    whole = native(source, scene.reference("plain"))
    assert sorted_rows(whole.where(condition)) == expected
    assert sorted_rows(native(source, scene.reference("plain"), filter=condition)) == expected


def test_a_filter_narrows_what_is_read(source: SparkSession, scene: Scene) -> None:
    reference = scene.reference("checkpoint_classic")
    condition = "part = 1 AND id < 20"
    whole = native(source, reference, partitionBytes=2000)
    fewer = native(source, reference, partitionBytes=2000, filter=condition)
    assert 0 < fewer.rdd.getNumPartitions() < whole.rdd.getNumPartitions()
    expected = sorted_rows(whole.where(condition).select("id"))
    for engine in ("delta", "native"):
        frame = read_table(source, reference, filter=condition, columns=["id"], engine=engine)
        assert sorted_rows(frame) == expected
    with pytest.raises(PySparkException, match="nope"):
        native(source, reference, filter="nope > 3")


def test_one_frame_with_several_filters(source: SparkSession, scene: Scene) -> None:
    """Spark plans a Python source once for a DataFrame, whatever the queries that are made of it ask for."""
    frame = native(source, scene.reference("plain"))
    low, high = frame.where("id < 10"), frame.where("id >= 90")
    counts = low.count(), high.count()
    assert min(counts) > 0
    assert low.union(high).count() == sum(counts)
    assert low.select("id").crossJoin(high.select("id")).count() == counts[0] * counts[1]
    assert len(frame.collect()) == 96
    frame.createOrReplaceTempView("reused")
    assert source.sql("SELECT * FROM reused WHERE id < 10").count() == counts[0]
    assert len(source.sql("SELECT * FROM reused").collect()) == 96


def test_views_for_sql(source: SparkSession, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, table in {"x.plain": "plain", "y.plain": "plain", "x.odd-name": "nested"}.items():
        scene.broker.share_table(f"few.{name}", scene.location(table), modes=("dir",))
    profile = scene.new_profile("sql", ["few"])
    with pytest.raises(SparkReadError, match="write the profile to a file"):
        create_views(source, json.loads(profile.read_text()), "few")
    monkeypatch.setenv("LAKEPASS_PROFILE", str(profile))
    assert create_views(source, None, "few", prefix="w_", engine="delta")
    made = create_views(source, profile, "few", prefix="v_", engine="native")
    assert sorted(made) == ["v_odd-name", "v_x_plain", "v_y_plain"]
    assert source.sql("SELECT count(*) FROM `v_odd-name`").collect()[0][0] > 0
    assert source.sql("SELECT count(*) FROM v_x_plain").collect()[0][0] == 96
    source.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW by_sql USING lakepass OPTIONS (table '{scene.reference('plain')}')"
    )
    assert source.sql("SELECT text FROM by_sql WHERE id = 9").collect()[0][0] == "row 9"


def test_what_goes_wrong_is_told(source: SparkSession, scene: Scene, tmp_path: Path) -> None:
    with pytest.raises(DeltaError, match=r"nowhere\.share"):
        read_table(source, f"{tmp_path}/nowhere.share#s.x.t")
    with pytest.raises(PySparkException, match=r"nowhere\.share"):
        native(source, f"{tmp_path}/nowhere.share#s.x.t")
    with pytest.raises(DeltaError, match=r"404|not found|no table|not there"):
        read_table(source, scene.reference("no_such_table"))
    with pytest.raises(PySparkException, match="'colums' is not an option"):
        native(source, scene.reference("plain"), colums="id")
    stranger = scene.new_profile("stranger", shares=[])
    with pytest.raises(DeltaError):
        read_table(source, f"{stranger}#{SHARE}.dir.plain")


def test_a_grant_that_ends_is_told_at_the_driver(source: SparkSession, scene: Scene) -> None:
    profile = scene.new_profile("leaver")
    scene.broker.catalog.recipients.revoke_grant("leaver", SHARE)
    with pytest.raises((DeltaError, PySparkException), match=r"40[134]"):
        read_table(source, f"{profile}#{SHARE}.dir.plain").collect()
