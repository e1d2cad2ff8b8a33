"""Writes rows to a file or to standard output, as Parquet, CSV or lines of JSON.

A file appears under its name only when it is whole: it is written beside it and renamed at the end.
"""

from __future__ import annotations

import base64
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import typer
from pyarrow import csv

from lakepass.cli.json_values import Convert, converters

if TYPE_CHECKING:
    from lakepass.reader.outputs import Outputs

FORMATS = ("parquet", "csv", "jsonl")


class _Sink(Protocol):
    def write(self, batch: pa.RecordBatch) -> None: ...
    def close(self) -> None: ...


def write_rows(rows: Outputs, output: str, wanted: str | None) -> None:
    """All rows to `output`, with a progress bar when a person is watching and rows do not go to the
    terminal."""
    chosen = _format(output, wanted)
    if output == "-":
        _to_standard_output(rows, chosen)
        return
    watched = sys.stderr.isatty()
    count = 0
    with _whole_file(Path(output)) as file:
        sink = _SINKS[chosen](file, rows.schema)
        for batch in rows.to_reader(progress=watched):
            sink.write(batch)
            count += batch.num_rows
        sink.close()
    typer.echo(f"{count:,} rows written to {output}", err=True)


def _to_standard_output(rows: Outputs, chosen: str) -> None:
    stream = sys.stdout.buffer
    batches = iter(rows.to_reader())
    # A read that fails at once prints nothing, not even a header.
    first = next(batches, None)
    sink = _SINKS[chosen](stream, rows.schema)
    for batch in () if first is None else chain([first], batches):
        sink.write(batch)
    sink.close()
    stream.flush()


def _format(output: str, wanted: str | None) -> str:
    if wanted is not None and wanted not in FORMATS:
        raise typer.BadParameter(f"{wanted!r} is not parquet, csv or jsonl.", param_hint="--format")
    if wanted is None:
        wanted = (
            "csv" if output == "-" else Path(output).suffix.lstrip(".").lower().replace("ndjson", "jsonl")
        )
    if wanted not in FORMATS:
        raise typer.BadParameter(
            f"cannot tell the format of {output!r}; give a name that ends in .parquet, .csv or .jsonl, or "
            "--format.",
            param_hint="--output",
        )
    return wanted


@contextmanager
def _whole_file(path: Path) -> Iterator[BinaryIO]:
    if path.is_dir() or not path.parent.is_dir():
        missing = f"{path} is a folder" if path.is_dir() else f"there is no folder {path.parent}"
        raise typer.BadParameter(f"{missing}; name a file in a folder that exists.", param_hint="--output")
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            yield file
        partial.replace(path)
    finally:
        with suppress(FileNotFoundError):
            partial.unlink()


class _Parquet:
    def __init__(self, stream: BinaryIO, schema: pa.Schema) -> None:
        self._writer = pq.ParquetWriter(stream, schema, compression="zstd")

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def close(self) -> None:
        self._writer.close()


class _Csv:
    def __init__(self, stream: BinaryIO, schema: pa.Schema) -> None:
        self._stream = stream
        self._convert = converters(schema)
        header = _flat(pa.RecordBatch.from_pylist([], schema=schema), self._convert)
        self._put(header, header=True)

    def write(self, batch: pa.RecordBatch) -> None:
        self._put(_flat(batch, self._convert), header=False)

    def _put(self, batch: pa.RecordBatch, *, header: bool) -> None:
        held = io.BytesIO()
        csv.write_csv(batch, held, csv.WriteOptions(include_header=header, quoting_style="needed"))
        self._stream.write(held.getvalue())

    def close(self) -> None:
        pass


class _Jsonl:
    def __init__(self, stream: BinaryIO, schema: pa.Schema) -> None:
        self._stream = stream
        self._convert = converters(schema)

    def write(self, batch: pa.RecordBatch) -> None:
        options = orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS
        rows = batch.to_pylist()
        for row in rows:
            for name, convert in self._convert.items():
                row[name] = convert(row[name])
        self._stream.write(b"".join(orjson.dumps(row, _plain, options) for row in rows))

    def close(self) -> None:
        pass


_SINKS: dict[str, Callable[[BinaryIO, pa.Schema], _Sink]] = {
    "parquet": _Parquet,
    "csv": _Csv,
    "jsonl": _Jsonl,
}


def _flat(batch: pa.RecordBatch, convert: dict[str, Convert]) -> pa.RecordBatch:
    """Nested columns as JSON text, binary as base64: CSV has neither."""
    columns: list[Any] = list(batch.columns)
    for index, name in enumerate(batch.schema.names):
        if not pa.types.is_nested(columns[index].type):
            continue
        ready = convert.get(name, lambda value: value)
        texts = [
            None if value is None else orjson.dumps(ready(value), _plain, orjson.OPT_NON_STR_KEYS).decode()
            for value in columns[index].to_pylist()
        ]
        columns[index] = pa.array(texts, pa.string())
    for index, column in enumerate(columns):
        if pa.types.is_binary(column.type):
            encoded = [None if one is None else base64.b64encode(one).decode() for one in column.to_pylist()]
            columns[index] = pa.array(encoded, pa.string())
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} has no JSON form")
