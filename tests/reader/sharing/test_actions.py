from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from lakepass.reader.errors import SharingError
from lakepass.reader.sharing.actions import ACTION_SCHEMA, BrokenOffError, End, Files, Header, parse
from lakepass.reader.sharing.names import TableName
from lakepass.reader.sharing.rest import Rest
from tests.reader.sharing.server import Asked, Reply, Server, ndjson

PROTOCOL = {"protocol": {"minReaderVersion": 1}}
SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": True, "metadata": {}},
            {
                "name": "day",
                "type": "date",
                "nullable": True,
                "metadata": {"delta.columnMapping.physicalName": "col-7"},
            },
        ],
    }
)
METADATA = {
    "metaData": {"id": "t", "format": {"provider": "parquet"}, "schemaString": SCHEMA, "partitionColumns": []}
}
BY_DAY = {"metaData": {**METADATA["metaData"], "partitionColumns": ["day"]}}
DELTA_PROTOCOL = {
    "protocol": {"deltaProtocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": []}}
}
DELTA_BY_DAY = {
    "metaData": {
        "size": 10,
        "location": "s3://b/t",
        "accessModes": ["url", "dir"],
        "deltaMetadata": {"id": "t", "schemaString": SCHEMA, "partitionColumns": ["day"], "format": {}},
    }
}
NAME = TableName("s", "d", "t")


def lines(*values: object) -> list[bytes]:
    return [json.dumps(value).encode() + b"\n" for value in values]


def file(number: int, **more: Any) -> dict[str, Any]:
    fields = {"url": f"https://x/{number}?sig=1", "id": f"f{number}", "size": 10, "partitionValues": {}}
    return {"file": {**fields, **more}}


def read(chunks: list[bytes], **options: Any) -> list[Header | Files | End]:
    return list(parse(chunks, asked="POST /q", **options))


def rows(actions: list[Header | Files | End]) -> list[dict[str, Any]]:
    batches = [one.batch for one in actions if isinstance(one, Files)]
    found: list[dict[str, Any]] = pa.Table.from_batches(batches, ACTION_SCHEMA).to_pylist()
    return found


def test_the_parquet_format() -> None:
    sent = file(1, partitionValues={"day": "2024-01-01"}, stats='{"numRecords":3}', expirationTimestamp=99)
    header, files, end = read(
        lines(PROTOCOL, BY_DAY, sent, {"endStreamAction": {"refreshToken": "r"}}), version=4
    )
    assert isinstance(header, Header)
    assert isinstance(files, Files)
    assert (header.version, header.delta, files.kind, end) == (4, False, "add", End("r"))
    row = rows([files])[0]
    assert (row["id"], row["url"], row["size"]) == ("f1", "https://x/1?sig=1", 10)
    assert row["partition_values"] == [("day", "2024-01-01")]
    assert (row["stats"], row["expires_ms"], row["deletion_vector"]) == ('{"numRecords":3}', 99, None)


def test_the_delta_format_with_mapping_and_deletion_vectors() -> None:
    vector = {
        "storageType": "p",
        "pathOrInlineDv": "https://x/dv",
        "offset": 1,
        "sizeInBytes": 36,
        "cardinality": 2,
    }
    add = {
        "path": "https://x/1?sig=1",
        "size": 5,
        "modificationTime": 7,
        "dataChange": True,
        "partitionValues": {"col-7": "2024-01-01"},
        "deletionVector": vector,
        "baseRowId": 100,
        "defaultRowCommitVersion": 3,
        "tags": {"unknown": "x"},
    }
    sent = {"file": {"id": "f1", "deletionVectorFileId": "d1", "deltaSingleAction": {"add": add}}}
    header, files = read(lines(DELTA_PROTOCOL, DELTA_BY_DAY, sent))
    assert isinstance(header, Header)
    assert (header.delta, header.extra["accessModes"], header.metadata["id"]) == (True, ["url", "dir"], "t")
    row = rows([files])[0]
    assert row["partition_values"] == [("col-7", "2024-01-01")]
    assert row["deletion_vector"] == {
        "storage_type": "p",
        "path_or_inline": "https://x/dv",
        "offset": 1,
        "size": 36,
        "cardinality": 2,
    }
    assert (row["base_row_id"], row["default_row_commit_version"], row["modification_time"]) == (100, 3, 7)


def test_changes_in_either_format_have_kinds_versions_and_timestamps() -> None:
    stamped = {"version": 2, "timestamp": 1000}
    plain = read(
        lines(
            PROTOCOL,
            METADATA,
            {"add": file(1, **stamped)["file"]},
            {"cdf": file(2, **stamped)["file"]},
            {"remove": file(3, **stamped)["file"]},
        )
    )
    assert [one.kind for one in plain if isinstance(one, Files)] == ["add", "cdc", "remove"]
    assert {(row["version"], row["timestamp"]) for row in rows(plain)} == {(2, 1000)}

    def wrapped(kind: str, number: int) -> dict[str, Any]:
        action = {"path": f"https://x/{number}", "size": 1, "partitionValues": {"col-7": "2024-01-01"}}
        return {"file": {"id": f"f{number}", **stamped, "deltaSingleAction": {kind: action}}}

    delta = read(
        lines(DELTA_PROTOCOL, DELTA_BY_DAY, wrapped("add", 1), wrapped("cdc", 2), wrapped("remove", 3))
    )
    assert {(one.kind, one.batch.column("id")[0].as_py()) for one in delta if isinstance(one, Files)} == {
        ("add", "f1"),
        ("cdc", "f2"),
        ("remove", "f3"),
    }


def test_a_null_partition_is_null_and_a_missing_one_is_an_error() -> None:
    given = read(lines(PROTOCOL, BY_DAY, file(1, partitionValues={"day": None})))
    assert rows(given)[0]["partition_values"] == [("day", None)]
    with pytest.raises(SharingError, match="no value for partition 'day'"):
        read(lines(PROTOCOL, BY_DAY, file(1, partitionValues={"Day": "2024-01-01"})))


def test_lines_cut_anywhere_and_spaced_anyhow_are_read() -> None:
    body = b"".join(lines(PROTOCOL, METADATA, file(1), file(2)))
    spaced = b'\n  { "file" : {"url": "https://x/3", "id": "f3", "size": 1, "partitionValues": {}} }\n\n'
    whole = body + spaced
    for step in (1, 7, len(whole)):
        chunks = [whole[start : start + step] for start in range(0, len(whole), step)]
        assert [row["id"] for row in rows(read(chunks))] == ["f1", "f2", "f3"]


@pytest.mark.parametrize("keep", [-2, -30, -80])
def test_a_truncated_body_fails(keep: int) -> None:
    body = b"".join(lines(PROTOCOL, METADATA, file(1), file(2)))
    with pytest.raises(BrokenOffError, match="breaks off"):
        read([body[:keep]])


def test_a_promised_end_that_is_missing_fails() -> None:
    with pytest.raises(BrokenOffError, match="endStreamAction"):
        read(lines(PROTOCOL, METADATA, file(1)), end_promised=True)
    assert len(rows(read(lines(PROTOCOL, METADATA, file(1))))) == 1


def test_an_error_at_the_end_fails_the_read() -> None:
    with pytest.raises(SharingError, match="out of disk"):
        read(lines(PROTOCOL, METADATA, file(1), {"endStreamAction": {"errorMessage": "out of disk"}}))


def test_what_the_protocol_forbids_is_refused() -> None:
    with pytest.raises(SharingError, match="no protocol"):
        read([b""])
    with pytest.raises(SharingError, match="newer version"):
        read(lines({"protocol": {"minReaderVersion": 2}}, METADATA))
    with pytest.raises(SharingError, match="before its metaData"):
        read(lines(PROTOCOL, file(1)))
    with pytest.raises(SharingError, match="goes on after"):
        read(lines(PROTOCOL, METADATA, {"endStreamAction": {}}, file(1)))
    with pytest.raises(SharingError, match="no schemaString"):
        read(lines(PROTOCOL, {"metaData": {"id": "m", "partitionColumns": []}}))
    with pytest.raises(SharingError, match="lacks its url"):
        read(lines(PROTOCOL, METADATA, {"file": {"id": "f", "size": 1, "partitionValues": {}}}))


def test_unknown_lines_and_fields_are_passed_over() -> None:
    unknown: list[object] = [{"horoscope": {"sign": "leo"}}, {"mood": 5}]
    read_back = read(lines(PROTOCOL, METADATA, *unknown, file(1, mood="good")))
    assert [row["id"] for row in rows(read_back)] == ["f1"]


def test_numbers_written_as_text_are_numbers_and_text_stays_text() -> None:
    """As the JSON of protobuf has 64-bit numbers."""
    values = {"day": "20240101"}
    add = {"path": "https://x/1", "size": "5", "modificationTime": "7", "partitionValues": values}
    vector = {"storageType": "u", "pathOrInlineDv": "x", "offset": "1", "sizeInBytes": 36.0, "cardinality": 2}
    delta = {"file": {"id": "1", "deltaSingleAction": {"add": {**add, "deletionVector": vector}}}}
    plain = file(1, size="10", expirationTimestamp="99", partitionValues=values)
    texts = {"protocol": {"minReaderVersion": "1"}}
    for sent in (
        [texts, BY_DAY, plain, {"endStreamAction": {"minUrlExpirationTimestamp": "9"}}],
        [DELTA_PROTOCOL, DELTA_BY_DAY, delta],
    ):
        row = rows(read(lines(*sent)))[0]
        assert [value for _, value in row["partition_values"]] == ["20240101"]
        assert row["size"] in (5, 10)
        if row["deletion_vector"]:
            assert (row["deletion_vector"]["offset"], row["deletion_vector"]["size"]) == (1, 36)
        else:
            assert row["expires_ms"] == 99
    with pytest.raises(SharingError, match="not as the protocol says"):
        read(lines(PROTOCOL, METADATA, file(1, size="large")))


def test_a_long_answer_passes_in_bounded_memory() -> None:
    line = json.dumps(file(1, url="https://x/" + "p" * 800)).encode() + b"\n"
    chunk = line * 100

    def body() -> Iterator[bytes]:
        yield from lines(PROTOCOL, METADATA)
        for _ in range(1000):
            yield chunk

    tracemalloc.start()
    before = pa.total_allocated_bytes()
    count, most = 0, 0
    for action in parse(body(), asked="POST /q"):
        if isinstance(action, Files):
            count += len(action.batch)
            most = max(most, pa.total_allocated_bytes() - before)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 100_000  # 95 MB of lines
    assert most < 32 << 20
    assert peak < 32 << 20


def test_pages_are_followed_and_their_headers_given_once(server: Server, rest: Rest) -> None:
    def page(asked: Asked) -> Reply:
        number = int(asked.fields.get("pageToken", "0"))
        end = {"nextPageToken": str(number + 1)} if number < 2 else {}
        if number == 0:
            end["refreshToken"] = "again"
        return ndjson(PROTOCOL, METADATA, file(number), {"endStreamAction": end})

    server.on("POST", f"{NAME.path}/query", page)
    actions = list(rest.query(NAME, {"includeRefreshToken": True}))
    assert [row["id"] for row in rows(actions)] == ["f0", "f1", "f2"]
    assert sum(isinstance(one, Header) for one in actions) == 1
    assert isinstance(actions[-1], End)
    assert actions[-1].refresh_token == "again"
    first, second, _ = server.asked
    assert first.fields["includeRefreshToken"] is True
    assert "includeRefreshToken" not in second.fields


def test_pages_of_different_versions_are_not_mixed(server: Server, rest: Rest) -> None:
    first = ndjson(PROTOCOL, METADATA, file(1), {"endStreamAction": {"nextPageToken": "2"}}, version=1)
    server.on("POST", f"{NAME.path}/query", first, ndjson(PROTOCOL, METADATA, file(2), version=2))
    with pytest.raises(SharingError, match="different versions"):
        list(rest.query(NAME, {}))


def test_a_page_that_breaks_off_is_asked_for_again(server: Server, rest: Rest) -> None:
    whole = ndjson(PROTOCOL, METADATA, file(1), file(2))
    cut = ndjson(PROTOCOL, METADATA, file(1), file(2), cut_after=len(whole.body) - 10)
    server.on("POST", f"{NAME.path}/query", cut, whole)
    assert [row["id"] for row in rows(list(rest.query(NAME, {})))] == ["f1", "f2"]
    server.on("POST", f"{NAME.path}/query", cut)
    with pytest.raises(SharingError, match="broke off"):
        list(rest.query(NAME, {}))


def test_capabilities_are_announced(server: Server, rest: Rest) -> None:
    server.on("GET", f"{NAME.path}/metadata", ndjson(PROTOCOL, METADATA, version=3))
    assert rest.metadata(NAME).version == 3
    sent = server.asked[0].headers["delta-sharing-capabilities"]
    assert "responseformat=delta,parquet" in sent
    assert "includeendstreamaction=true" in sent
    assert {"deletionvectors", "columnmapping", "timestampntz"} <= set(
        sent.split("readerfeatures=")[1].split(";")[0].split(",")
    )


def test_an_end_promised_in_the_header_must_come(server: Server, rest: Rest) -> None:
    promised = "responseformat=parquet;includeEndStreamAction=true"
    server.on("POST", f"{NAME.path}/query", ndjson(PROTOCOL, METADATA, file(1), capabilities=promised))
    with pytest.raises(SharingError, match="before its endStreamAction"):
        list(rest.query(NAME, {}))
