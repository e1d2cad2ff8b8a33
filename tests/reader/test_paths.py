"""Paths of a log: one at a time, and a million at once."""

from __future__ import annotations

from urllib.parse import quote

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakepass.reader.errors import PathRefusedError
from lakepass.reader.location import Location
from lakepass.reader.paths import reconciliation_keys, resolve

S3 = Location.parse("s3://lake/orders")
LOCAL = Location.parse("/data/my orders")
AZURE = Location.parse("abfss://c@acct.dfs.core.windows.net/t")


@pytest.mark.parametrize(
    ("root", "logged", "path"),
    [
        (S3, "part-0.parquet", "s3://lake/orders/part-0.parquet"),
        (S3, "p=a%20b/x.parquet", "s3://lake/orders/p=a b/x.parquet"),
        (S3, "p=a%2520b/x.parquet", "s3://lake/orders/p=a%20b/x.parquet"),
        (S3, "p=%C3%A9/x", "s3://lake/orders/p=é/x"),
        (S3, "p=a+b/x", "s3://lake/orders/p=a+b/x"),
        (S3, "p=12:30/x", "s3://lake/orders/p=12:30/x"),
        (S3, "a%2Fb", "s3://lake/orders/a/b"),
        (S3, "a//b", "s3://lake/orders/a/b"),
        (S3, "100%/x", "s3://lake/orders/100%/x"),
        (S3, "s3://lake/orders/x", "s3://lake/orders/x"),
        (S3, "s3a://other/y%20z", "s3://other/y z"),
        (S3, "S3N://other/y", "s3://other/y"),
        (S3, "/orders/x", "s3://lake/orders/x"),
        (S3, "gs://bucket/x", "gs://bucket/x"),
        (AZURE, "abfs://c@acct.dfs.core.windows.net/t/x", "abfss://c@acct.dfs.core.windows.net/t/x"),
        (AZURE, "abfss://c@ACCT.dfs.core.windows.net/t/x", "abfss://c@acct.dfs.core.windows.net/t/x"),
        (LOCAL, "x", "file:///data/my orders/x"),
        (LOCAL, "/data/my%20orders/x", "file:///data/my orders/x"),
        (LOCAL, "file:/a/b", "file:///a/b"),
        (LOCAL, "file:///a/b%23c", "file:///a/b#c"),
        (LOCAL, "file://localhost/a/b", "file:///a/b"),
    ],
)
def test_what_a_path_means(root: Location, logged: str, path: str) -> None:
    assert resolve(root, logged) == path


SEGMENT = st.text(
    st.characters(
        min_codepoint=33, max_codepoint=0x2FFF, exclude_categories=("Cs", "Cc"), exclude_characters="/"
    ),
    min_size=1,
    max_size=8,
).filter(lambda text: text not in (".", "..") and ":" not in text)
FORMS = st.sampled_from(["{path}", "{place}/{path}", "{alias}/{path}", "/orders/{path}"])


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(st.lists(SEGMENT, min_size=1, max_size=3), FORMS, st.sampled_from(["", "/", "/=:@"])),
        min_size=1,
        max_size=8,
    )
)
def test_keys_are_equal_exactly_when_the_files_are(names: list[tuple[list[str], str, str]]) -> None:
    logged = []
    for segments, form, safe in names:
        path = "/".join(quote(segment, safe=safe.replace("/", "")) for segment in segments)
        logged.append(form.format(path=path, place="s3://lake/orders", alias="s3a://lake/orders"))
    meant = [resolve(S3, each) for each in logged]
    keys = reconciliation_keys(S3, pa.array(logged)).to_pylist()
    for first, one in zip(meant, keys, strict=True):
        for second, other in zip(meant, keys, strict=True):
            assert (one == other) == (first == second), (logged, keys)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.none() | st.text(max_size=12), max_size=12), st.integers(0, 3))
def test_keys_of_any_text_on_any_slice(texts: list[str | None], start: int) -> None:
    texts = [None if text is None else text.encode("utf-8", "replace").decode() for text in texts]
    whole = reconciliation_keys(S3, pa.array(texts, pa.string())).to_pylist()
    sliced = reconciliation_keys(S3, pa.array(texts, pa.string()).slice(start)).to_pylist()
    assert sliced == whole[start:]
    assert [key is None for key in whole] == [text is None for text in texts]


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=40))
def test_any_text_is_a_path_or_refused(text: str) -> None:
    try:
        path = resolve(S3, text)
    except (PathRefusedError, UnicodeEncodeError):
        return
    assert path.partition("://")[0] in ("s3", "gs", "abfss", "file")
    assert not {"", ".", ".."} & set(path.partition("://")[2].split("/")[1:])
