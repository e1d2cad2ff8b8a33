"""Version, metadata and snapshot queries: shapes, formats, versions, pages and refreshes."""

from __future__ import annotations

import hashlib
import io
import re
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest
from sqlalchemy import text

from tests.broker.lake import BOTH, DELTA, Lake, error, files, lines
from tests.tables.fixtures import fixture


def _rows(lake: Lake, answer: httpx.Response) -> int:
    """Rows behind the URLs of an answer, before deletion vectors."""
    return sum(
        pq.read_metadata(io.BytesIO(httpx.get(file["url"]).content)).num_rows for file in files(answer)
    )


def test_version_is_in_the_header_of_both_forms(lake: Lake) -> None:
    expected = str(fixture("plain").latest)
    got = lake.version("plain")
    assert (got.status_code, got.headers["delta-table-version"], got.content) == (200, expected, b"")
    head = lake.client.head(lake.path("PLAIN"))
    assert (head.status_code, head.headers["delta-table-version"], head.content) == (200, expected, b"")
    missing = lake.client.head(lake.path("nothing"))
    assert (missing.status_code, missing.content) == (404, b"")


def test_version_at_or_after_a_time(lake: Lake) -> None:
    first = lake.version("in_commit_timestamps", startingTimestamp="2000-01-01T00:00:00Z")
    assert first.headers["delta-table-version"] == "0"
    stamps = _commit_times(lake, "in_commit_timestamps")
    for version, stamp in stamps.items():
        exact = lake.version("in_commit_timestamps", startingTimestamp=stamp)
        assert exact.headers["delta-table-version"] == str(version)
    assert "after" in error(lake.version("in_commit_timestamps", startingTimestamp="2999-01-01T00:00:00Z"))
    for wrong in ("2021-01-01", "yesterday", "2021-01-01T00:00:00", "2021-13-01T00:00:00Z", ""):
        error(lake.version("in_commit_timestamps", startingTimestamp=wrong), code="INVALID_PARAMETER_VALUE")


def _commit_times(lake: Lake, table: str) -> dict[int, str]:
    """The time of each version, as the change lines of a query say it."""
    from datetime import UTC, datetime

    times: dict[int, str] = {}
    for file in files(lake.query(table, {"startingVersion": 0})):
        moment = datetime.fromtimestamp(file["timestamp"] / 1000, UTC)
        times[file["version"]] = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return times


def test_metadata_in_parquet_format(lake: Lake) -> None:
    answer = lake.metadata("partitioned")
    protocol, metadata = lines(answer)
    assert protocol == {"protocol": {"minReaderVersion": 1}}
    assert answer.headers["delta-sharing-capabilities"] == "responseformat=parquet"
    assert answer.headers["delta-table-version"] == str(fixture("partitioned").latest)
    described = metadata["metaData"]
    assert described["format"] == {"provider": "parquet"}
    assert described["accessModes"] == ["url"]
    assert "version" not in described
    assert "location" not in described, "a recipient with url only is not told where the data lies"
    assert described["partitionColumns"]
    assert lines(lake.metadata("change_feed"))[1]["metaData"]["configuration"] == {
        "enableChangeDataFeed": "true"
    }
    assert lines(lake.metadata("plain"))[1]["metaData"]["partitionColumns"] == []


def test_metadata_in_delta_format_is_the_tables_own(lake: Lake) -> None:
    answer = lake.metadata("deletion_vectors", DELTA)
    protocol, metadata = lines(answer)
    assert answer.headers["delta-sharing-capabilities"] == "responseformat=delta"
    assert "deletionVectors" in protocol["protocol"]["deltaProtocol"]["readerFeatures"]
    described = metadata["metaData"]["deltaMetadata"]
    assert described["configuration"]["delta.enableDeletionVectors"] == "true"
    assert metadata["metaData"]["accessModes"] == ["url"]


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        (None, "parquet"),
        ("", "parquet"),
        ("responseformat=parquet", "parquet"),
        ("responseformat=delta", "delta"),
        ("responseformat=delta,parquet", "parquet"),
        ("responseformat=parquet,delta", "parquet"),
        ("ResponseFormat=DELTA;ReaderFeatures=DeletionVectors", "delta"),
        ("responseformat = delta ; unknown=1;;", "delta"),
        ("accessmodes=url,prefix", "parquet"),
    ],
)
def test_the_format_follows_the_capabilities(lake: Lake, asked: str | None, given: str) -> None:
    headers = {} if asked is None else {"delta-sharing-capabilities": asked}
    for answer in (lake.metadata("plain", headers), lake.query("plain", {}, headers)):
        assert answer.status_code == 200
        assert answer.headers["delta-sharing-capabilities"] == f"responseformat={given}"
        assert ("deltaProtocol" in lines(answer)[0]["protocol"]) == (given == "delta")


def test_the_end_of_the_stream_is_marked_when_asked_for(lake: Lake) -> None:
    for form in ("parquet", "delta"):
        header = {"delta-sharing-capabilities": f"responseformat={form};includeEndStreamAction=TRUE"}
        answer = lake.query("plain", {}, header)
        assert (
            answer.headers["delta-sharing-capabilities"]
            == f"responseformat={form};includeendstreamaction=true"
        )
        end = lines(answer)[-1]["endStreamAction"]
        assert set(end) == {"minUrlExpirationTimestamp"}
        assert all("endStreamAction" not in line for line in lines(lake.query("plain")))
        described = lake.metadata("plain", header)
        assert len(lines(described)) == 2
        assert described.headers["delta-sharing-capabilities"] == f"responseformat={form}"


@pytest.mark.parametrize(
    ("table", "feature"),
    [
        ("deletion_vectors", "deletionvectors"),
        ("deletion_vectors_inline", "deletionvectors"),
        ("mapping_name", "columnmapping"),
        ("mapping_id", "columnmapping"),
        ("timestamp_ntz", "timestampntz"),
    ],
)
def test_a_table_is_never_given_in_a_form_that_would_lose_its_meaning(
    lake: Lake, table: str, feature: str
) -> None:
    all_features = "readerfeatures=deletionvectors,columnmapping,timestampntz"
    for header in (
        {},
        {"delta-sharing-capabilities": "responseformat=parquet"},
        {"delta-sharing-capabilities": f"responseformat=parquet;{all_features}"},
        {"delta-sharing-capabilities": "responseformat=delta"},
        {"delta-sharing-capabilities": "responseformat=delta;readerfeatures=other"},
    ):
        for answer in (lake.metadata(table, header), lake.query(table, {}, header)):
            assert feature in error(answer, code="UNSUPPORTED_OPERATION")
    assert lake.query(table, {}, BOTH).headers["delta-sharing-capabilities"] == "responseformat=delta"


def test_an_unknown_format_is_refused(lake: Lake) -> None:
    header = {"delta-sharing-capabilities": "responseformat=avro"}
    error(lake.metadata("plain", header), code="INVALID_PARAMETER_VALUE")


def test_files_in_parquet_format(lake: Lake) -> None:
    answer = lake.query("partitioned")
    given = files(answer)
    assert len(given) == 5
    for file in given:
        assert set(file) <= {"url", "id", "partitionValues", "size", "stats", "expirationTimestamp"}
        assert re.fullmatch("[0-9a-f]{32}", file["id"])
        assert httpx.get(file["url"]).headers["content-length"] == str(file["size"])
        assert set(file["partitionValues"]) == set(lines(answer)[1]["metaData"]["partitionColumns"])
    assert _rows(lake, answer) == fixture("partitioned").rows().num_rows


def test_partition_values_are_the_logs_own(lake: Lake) -> None:
    texts = {file["partitionValues"]["text"] for file in files(lake.query("partitioned"))}
    assert None in texts, "the fixture has a null partition"
    assert len(texts) > 2


def test_files_in_delta_format_carry_their_vectors(lake: Lake) -> None:
    with_vectors = 0
    for file in files(lake.query("deletion_vectors", {}, DELTA)):
        add = file["deltaSingleAction"]["add"]
        assert re.fullmatch("[0-9a-f]{64}", file["id"])
        assert "version" not in file
        assert httpx.get(add["path"]).status_code == 200
        vector = add.get("deletionVector")
        assert (vector is None) == ("deletionVectorFileId" not in file)
        if vector is not None:
            with_vectors += 1
            assert vector["storageType"] == "p"
            assert "X-Amz-Signature=" in vector["pathOrInlineDv"]
            assert httpx.get(vector["pathOrInlineDv"]).status_code == 200
            assert re.fullmatch("[0-9a-f]{64}", file["deletionVectorFileId"])
    assert with_vectors


def test_inline_vectors_travel_as_they_are(lake: Lake) -> None:
    vectors = [
        (file["deltaSingleAction"]["add"]["deletionVector"], file["deletionVectorFileId"])
        for file in files(lake.query("deletion_vectors_inline", {}, DELTA))
        if "deletionVector" in file["deltaSingleAction"]["add"]
    ]
    assert vectors
    for vector, identity in vectors:
        assert vector["storageType"] == "i"
        assert not vector["pathOrInlineDv"].startswith("http")
        assert identity


def test_ids_stay_the_same_and_follow_the_header(lake: Lake) -> None:
    parquet = [file["id"] for file in files(lake.query("plain"))]
    assert parquet == [file["id"] for file in files(lake.query("plain"))]
    delta = {file["id"] for file in files(lake.query("plain", {}, DELTA))}
    assert {len(identity) for identity in delta} == {64}
    for asked in ("parquet", "PARQUET", "delta", "Delta"):
        answer = lake.query("plain", {}, {**DELTA, "fileidhash": asked})
        assert answer.headers["fileidhash"] == asked.lower()
        expected = set(parquet) if asked.lower() == "parquet" else delta
        assert {file["id"] for file in files(answer)} == expected
    for wrong in ("", "md5", "parquet,delta"):
        error(lake.query("plain", {}, {"fileidhash": wrong}), code="INVALID_PARAMETER_VALUE")
    assert "fileidhash" not in lake.query("plain").headers


def test_an_altered_url_opens_nothing(lake: Lake) -> None:
    url = files(lake.query("plain"))[0]["url"]
    assert httpx.get(url).status_code == 200
    other = url.replace("/plain/", "/partitioned/")
    assert httpx.get(other).status_code == 403
    assert httpx.get(url.split("?")[0]).status_code == 403


def test_an_earlier_version(lake: Lake) -> None:
    table = fixture("plain")
    assert table.earlier is not None
    for version in (table.earlier, str(table.earlier)):
        answer = lake.query("plain", {"version": version})
        assert answer.headers["delta-table-version"] == str(table.earlier)
        assert "version" not in lines(answer)[1]["metaData"]
        assert {file["version"] for file in files(answer)} == {table.earlier}
        assert all("timestamp" not in file for file in files(answer))
        assert _rows(lake, answer) == table.rows(table.earlier).num_rows
    delta = lake.query("plain", {"version": table.earlier}, DELTA)
    assert all("version" not in file and "timestamp" not in file for file in files(delta))


def test_a_version_by_time(lake: Lake) -> None:
    for version, stamp in _commit_times(lake, "in_commit_timestamps").items():
        answer = lake.query("in_commit_timestamps", {"timestamp": stamp, "endingVersion": 0})
        assert answer.headers["delta-table-version"] == str(version)
        metadata = lake.metadata("in_commit_timestamps", timestamp=stamp)
        assert metadata.headers["delta-table-version"] == str(version)
    assert "before" in error(lake.query("in_commit_timestamps", {"timestamp": "2000-01-01T00:00:00-08:00"}))
    assert "after" in error(lake.query("in_commit_timestamps", {"timestamp": "9999-01-01T00:00:00-08:00"}))
    error(lake.metadata("in_commit_timestamps", timestamp="2021-01-01"))


def test_metadata_of_a_version_is_the_schema_of_that_time(lake: Lake) -> None:
    latest = fixture("schema_evolution").latest
    first = lines(lake.metadata("schema_evolution", version=0))[1]["metaData"]["schemaString"]
    last = lines(lake.metadata("schema_evolution", version=latest))[1]["metaData"]["schemaString"]
    assert first != last
    assert lake.metadata("schema_evolution", version=0).headers["delta-table-version"] == "0"
    assert str(latest + 1) in error(lake.metadata("schema_evolution", version=latest + 1))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"version": 1, "timestamp": "2022-01-01T00:00:00Z"}, "INVALID_PARAMETER_VALUE"),
        ({"version": "3", "startingVersion": 2}, "INVALID_PARAMETER_VALUE"),
        ({"timestamp": "abc", "startingVersion": 2}, "INVALID_PARAMETER_VALUE"),
        ({"version": -2}, "INVALID_PARAMETER_VALUE"),
        ({"startingVersion": -2}, "INVALID_PARAMETER_VALUE"),
        ({"version": "x3"}, "MALFORMED_REQUEST"),
        ({"startingVersion": "x3"}, "MALFORMED_REQUEST"),
        ({"startingVersion": "1", "endingVersion": "x3"}, "MALFORMED_REQUEST"),
        ({"startingVersion": 3, "endingVersion": 2}, "INVALID_PARAMETER_VALUE"),
        ({"startingVersion": 0, "endingVersion": 999}, "INVALID_PARAMETER_VALUE"),
        ({"startingVersion": 999}, "INVALID_PARAMETER_VALUE"),
        ({"version": 999}, "INVALID_PARAMETER_VALUE"),
        ({"version": 2**70}, "MALFORMED_REQUEST"),
        ({"version": True}, "MALFORMED_REQUEST"),
        ({"version": 1.5}, "MALFORMED_REQUEST"),
        ({"timestamp": 7}, "MALFORMED_REQUEST"),
        ({"predicateHints": {}}, "MALFORMED_REQUEST"),
        ({"predicateHints": "a = 1"}, "MALFORMED_REQUEST"),
        ({"predicateHints": [1]}, "MALFORMED_REQUEST"),
        ({"limitHint": "many"}, "MALFORMED_REQUEST"),
        ({"limitHint": -1}, "INVALID_PARAMETER_VALUE"),
        ({"maxFiles": 0}, "INVALID_PARAMETER_VALUE"),
        ({"maxFiles": -1}, "INVALID_PARAMETER_VALUE"),
        ({"maxFiles": 3000000000}, "INVALID_PARAMETER_VALUE"),
        ({"pageToken": "garbage"}, "INVALID_PARAMETER_VALUE"),
        ({"refreshToken": "garbage"}, "INVALID_PARAMETER_VALUE"),
        ({"includeRefreshToken": True, "version": 1}, "INVALID_PARAMETER_VALUE"),
        ({"refreshToken": "x", "startingVersion": 1}, "INVALID_PARAMETER_VALUE"),
        ({"includeRefreshToken": True, "pageToken": "x"}, "INVALID_PARAMETER_VALUE"),
        ({"refreshToken": "x", "pageToken": "x"}, "INVALID_PARAMETER_VALUE"),
        ([], "MALFORMED_REQUEST"),
        ("text", "MALFORMED_REQUEST"),
    ],
)
def test_a_query_that_means_nothing_is_refused(lake: Lake, body: Any, code: str) -> None:
    error(lake.query("plain", body), code=code)


@pytest.mark.parametrize("share", ["nohistory"])
def test_history_that_is_not_shared(lake: Lake, share: str) -> None:
    for body in ({"version": 1}, {"timestamp": "abc"}, {"startingVersion": 0}):
        assert "history" in error(lake.query("plain", body, share=share))
    base = lake.path("plain", share=share)
    for call in ("/version?startingTimestamp=abc", "/metadata?version=1", "/metadata?timestamp=x"):
        assert "history" in error(lake.client.get(base + call))
    assert "history" in error(lake.client.get(lake.path("change_feed", "/changes?startingVersion=0", share)))
    assert lake.query("plain", share=share).status_code == 200


def test_a_share_that_starts_at_a_version(lake: Lake) -> None:
    for body in ({"version": 1}, {"startingVersion": 0}):
        assert "since version 2" in error(lake.query("plain", body, share="late"))
    assert "since version 2" in error(lake.client.get(lake.path("plain", "/metadata?version=0", "late")))
    changes = lake.client.get(lake.path("change_feed", "/changes?startingVersion=1", "late"))
    assert "since version 2" in error(changes)
    assert lake.query("plain", {"version": 2}, share="late").status_code == 200


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"", "application/json", 400),
        (b"{", "application/json", 400),
        (b'{"a":' * 5000, "application/json", 400),
        (b"{}", "text/plain", 415),
        (b"{}", "application/json; charset=utf8", 200),
        (b'{"params": {"x": 1}, "unknown": null}', "application/json", 200),
        (b"", None, 200),
        (b"\xff\xfe", "application/json", 400),
    ],
)
def test_bodies(lake: Lake, content: bytes, kind: str | None, status: int) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    answer = lake.client.post(lake.path("plain", "/query"), content=content, headers=headers)
    assert answer.status_code == status, answer.text


def test_pages_together_are_the_answer(lake: Lake) -> None:
    for form in ({}, DELTA):
        whole = lines(lake.query("plain", {}, form))
        gathered: list[str] = []
        token = None
        while True:
            body = {"maxFiles": 1} | ({"pageToken": token} if token else {})
            page = lines(lake.query("plain", body, form))
            assert page[:2] == whole[:2], "each page repeats protocol and metadata"
            assert len(page) == 4
            gathered.append(page[2]["file"]["id"])
            end = page[3]["endStreamAction"]
            assert end["minUrlExpirationTimestamp"]
            token = end.get("nextPageToken")
            if token is None:
                break
        assert gathered == [line["file"]["id"] for line in whole[2:]]
    full = lines(lake.query("plain", {"maxFiles": 1000}))
    assert "nextPageToken" not in full[-1]["endStreamAction"]


def test_a_page_token_is_for_one_request_only(lake: Lake) -> None:
    token = lines(lake.query("plain", {"maxFiles": 1}))[-1]["endStreamAction"]["nextPageToken"]
    error(lake.query("partitioned", {"maxFiles": 1, "pageToken": token}))
    error(lake.query("plain", {"maxFiles": 1, "pageToken": token}, share="nohistory"))
    error(lake.query("plain", {"maxFiles": 1, "limitHint": 5, "pageToken": token}))
    error(lake.query("plain", {"maxFiles": 1, "pageToken": token[:-3] + "abc"}))
    other = lake.broker.client(lake.broker.recipient("page-thief", shares=["share"]))
    error(other.post(lake.path("plain", "/query"), json={"maxFiles": 1, "pageToken": token}))
    assert len(files(lake.query("plain", {"maxFiles": 2, "pageToken": token}))) == 2
    rest = lines(lake.query("plain", {"pageToken": token}))
    assert "endStreamAction" in rest[-1]


def test_a_refresh_gives_the_same_version_after_a_change(lake: Lake) -> None:
    bucket = lake.store.create_bucket()
    location = f"s3://{lake.bucket}/refreshed"
    del bucket
    source = fixture("checkpoint_classic").path
    commits = sorted((source / "_delta_log").glob("*.json"))
    for file in source.rglob("*.parquet"):
        key = f"refreshed/{file.relative_to(source).as_posix()}"
        if "_delta_log" not in key:
            lake.store.s3().put_object(Bucket=lake.bucket, Key=key, Body=file.read_bytes())

    def commit(path: Any) -> None:
        lake.store.s3().put_object(
            Bucket=lake.bucket, Key=f"refreshed/_delta_log/{path.name}", Body=path.read_bytes()
        )

    for path in commits[:2]:
        commit(path)
    lake.broker.share_table("share.tables.refreshed", location)
    first = lines(lake.query("refreshed", {"includeRefreshToken": True}))
    token = first[-1]["endStreamAction"]["refreshToken"]
    commit(commits[2])
    assert lake.version("refreshed").headers["delta-table-version"] == "2"
    for more in ({}, {"includeRefreshToken": True}):
        answer = lake.query("refreshed", {"refreshToken": token, **more})
        assert answer.headers["delta-table-version"] == "1"
        again = [line["file"]["id"] for line in lines(answer) if "file" in line]
        assert again == [line["file"]["id"] for line in first if "file" in line]
    assert lake.query("refreshed").headers["delta-table-version"] == "2"
    error(lake.query("plain", {"refreshToken": token}))


def test_a_limit_counts_rows_after_deletion_vectors(lake: Lake) -> None:
    whole = files(lake.query("deletion_vectors", {}, DELTA))

    def live(file: dict[str, Any]) -> int:
        import json

        add = file["deltaSingleAction"]["add"]
        vector = add.get("deletionVector")
        return int(json.loads(add["stats"])["numRecords"]) - (vector["cardinality"] if vector else 0)

    total = sum(live(file) for file in whole)
    for limit in (0, 1, live(whole[0]), live(whole[0]) + 1, total, total + 1, 2**31):
        given = files(lake.query("deletion_vectors", {"limitHint": limit}, DELTA))
        assert sum(live(file) for file in given) >= min(limit, total)
        assert sum(live(file) for file in given[:-1]) < max(limit, 1)
    assert files(lake.query("plain", {"limitHint": 0})) == []


def test_asynchronous_queries(lake: Lake) -> None:
    header = {"delta-sharing-capabilities": "asyncquery=true;responseformat=parquet"}
    assert "idempotency" in error(lake.query("plain", {"maxFiles": 1}, header))
    ids = set()
    for name in ("idempotencyKey", "idempotency_key"):
        accepted = lake.query("plain", {name: "key one"}, header)
        assert accepted.headers["delta-table-version"] == str(fixture("plain").latest)
        (status,) = lines(accepted)
        assert status["queryStatus"]["status"] == "pending"
        ids.add(status["queryStatus"]["queryId"])
    assert len(ids) == 1, "the same key is the same query"
    error(lake.query("plain", {"idempotencyKey": "key one", "limitHint": 1}, header))
    url = lake.path("plain", f"/queries/{ids.pop()}")
    page = lines(lake.client.post(url, json={"maxFiles": 1}, headers=header))
    assert len(page) == 4
    token = page[-1]["endStreamAction"]["nextPageToken"]
    following = lines(lake.client.post(url, json={"maxFiles": 1, "pageToken": token}, headers=header))
    assert following[2]["file"]["id"] != page[2]["file"]["id"]
    everything = lake.client.post(url)
    assert len(files(everything)) == len(files(lake.query("plain")))
    error(lake.client.post(lake.path("plain", "/queries/none"), json={}), 404, "RESOURCE_DOES_NOT_EXIST")
    other = lake.broker.client(lake.broker.recipient("query-thief", shares=["share"]))
    assert other.post(url, json={}).status_code == 404
    with lake.broker.catalog.engine.begin() as connection:
        connection.execute(text("UPDATE async_queries SET expires_at = 1 WHERE idempotency_key = 'key one'"))
    error(lake.client.post(url, json={}), 404)


def test_an_answer_says_nothing_about_storage(lake: Lake) -> None:
    message = error(lake.version("absent"), 404)
    assert lake.bucket not in message
    assert "s3:" not in message
    for answer in (
        lake.query("plain", {"version": 999}),
        lake.query("absent"),
        lake.changes("absent", startingVersion=0),
    ):
        assert lake.bucket not in answer.text


def test_every_kind_of_log_is_read(lake: Lake) -> None:
    for name in ("checkpoint_classic", "checkpoint_truncated", "nested", "writer_features", "empty"):
        table = fixture(name)
        answer = lake.query(name)
        assert answer.headers["delta-table-version"] == str(table.latest)
        assert _rows(lake, answer) == table.rows().num_rows


def test_ids_are_hashes_of_the_logged_path(lake: Lake) -> None:
    import json

    logged = set()
    for commit in (fixture("plain").path / "_delta_log").glob("*.json"):
        for line in commit.read_text().splitlines():
            action = json.loads(line)
            if "add" in action:
                logged.add(hashlib.md5(action["add"]["path"].encode()).hexdigest())
    assert {file["id"] for file in files(lake.query("plain"))} <= logged


def test_table_answers_rest_in_no_cache(lake: Lake) -> None:
    for answer in (lake.version("plain"), lake.metadata("plain"), lake.query("plain")):
        assert answer.headers["cache-control"] == "no-store"
