"""Options and errors as words: what users type, what the reader is told, what a failure says."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakepass.spark_conf.errors import SparkReadError, told_in_words, translated
from lakepass.spark_conf.opening import Reference, check_mode
from lakepass.spark_conf.options import Options, split_columns
from lakepass.spark_conf.source import BatchReader, LakepassDataSource, read_task
from tests.tables.fixtures import place

MISSING = "java.lang.ClassNotFoundException: Class"


def test_options_in_any_case() -> None:
    options = Options.parse(
        {"path": "p#s.x.t", "VersionAsOf": "3", "ReadChangeFeed": "TRUE", "columns": "a,`b, c`"}
    )
    assert options.version == 3
    assert options.change_feed
    assert options.columns == ("a", "b, c")
    assert Options.parse({"table": "p#s.x.t", "startingVersion": "latest"}).starting_version == -1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "Name a table"),
        ({"path": "t", "versoin": "3"}, "'versoin' is not an option"),
        ({"path": "t", "version": "three"}, "not a whole number"),
        ({"path": "t", "maxFilesPerTrigger": "0"}, "from 1 on"),
        ({"path": "t", "partitionBytes": "1"}, "from 1024 on"),
        ({"path": "t", "ignoreDeletes": "yes"}, "neither true nor false"),
        ({"path": "t", "mode": "fast"}, "'auto', 'dir' or 'url'"),
        ({"path": "t", "version": "1", "timestamp": "2024-01-01"}, "not both"),
        ({"path": "t", "columns": "a,,b"}, "not a list of names"),
    ],
)
def test_options_that_cannot_be(given: dict[str, str], message: str) -> None:
    with pytest.raises(SparkReadError, match=message):
        Options.parse(given)


def test_columns_between_commas() -> None:
    assert split_columns(" a , `tick``ed`, b c ") == ("a", "tick`ed", "b c")


def test_references() -> None:
    assert Reference("me.share#sales.eu.orders").is_shared
    assert Reference("https://e.com/me.share#sales.eu.orders").is_shared
    assert Reference("sales.eu.orders").is_shared
    assert not Reference("/data/orders").is_shared
    assert not Reference("s3://lake/orders").is_shared
    assert check_mode(" DIR ") == "dir"


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        (f"{MISSING} org.apache.hadoop.fs.s3a.S3AFileSystem not found", "no connector for S3"),
        (f"{MISSING} com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem not found", "Cloud Storage"),
        ("[DATA_SOURCE_NOT_FOUND] Failed to find the data source: delta.", "Spark has no Delta Lake"),
        (
            "ApiException: generateTemporaryTableCredentials call failed with: 403 - "
            '{"errorCode":"FORBIDDEN","message":"Ask for a grant."}',
            r"refused a credential \(403\).*Ask for a grant",
        ),
        ("java.net.ConnectException: Connection refused", "cannot be reached"),
        ("AccessDeniedException: Forbidden; Status Code: 403", "refused the credential"),
        ("ExpiredToken: The provided token has expired", "has ended"),
    ],
)
def test_traces_of_java_in_words(text: str, meaning: str) -> None:
    told = translated(text)
    assert told is not None
    assert re.search(meaning, told)


def test_what_is_not_known_is_left_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError), told_in_words("t"):
        1 / 0  # noqa: B018
    with (
        pytest.raises(SparkReadError, match=r"p#s\.x\.t cannot be read: The broker"),
        told_in_words("p#s.x.t"),
    ):
        raise RuntimeError("Connection refused")


def test_what_travels_holds_no_row_of_the_log(tmp_path: Path) -> None:
    """A reader that goes to executors is its options; the tasks go one to each."""
    table = place("plain", tmp_path)
    source = LakepassDataSource({"path": str(table.path)})
    schema = source.schema()
    assert source.version == table.latest
    reader = source.reader(schema)
    assert isinstance(reader, BatchReader)
    assert len(pickle.dumps(reader)) < 10_000
    (partition,) = reader.partitions()
    copy = pickle.loads(pickle.dumps(partition))
    assert sum(batch.num_rows for batch in reader.read(copy)) == table.rows().num_rows


def test_many_small_files_are_work_for_more_than_one(tmp_path: Path) -> None:
    """Opening a file takes time whatever its size: bytes alone would put them all into one task."""
    ids = list(range(300))
    write_deltalake(tmp_path, pa.table({"id": ids, "part": ids}), partition_by="part")
    schema = LakepassDataSource({"path": str(tmp_path)}).schema()
    tasks = BatchReader(Options.parse({"path": str(tmp_path)}), None, schema).partitions()
    assert len(tasks) == 5
    read = pa.Table.from_batches([batch for task in tasks for batch in read_task(task, schema)])
    assert read.sort_by("id").column("id").to_pylist() == ids
