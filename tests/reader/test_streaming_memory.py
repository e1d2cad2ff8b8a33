"""The memory of a stream does not follow the size of the table."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench import log_tables as checkpoints
from tests.reader.written import Written, field

_READ = """
import sys
import pyarrow as pa
from lakepass.reader.table import Table

peak = rows = 0
for batch in Table(sys.argv[1]).snapshot().scan().to_reader():
    rows += batch.num_rows
    del batch
    peak = max(peak, pa.total_allocated_bytes())
print(rows, peak)
"""


def _peak(folder: Path, files: int) -> int:
    written = Written(folder, [field("id", "long"), field("value", "double")])
    count = 400_000
    for start in range(files):
        ids = np.arange(start * count, (start + 1) * count)
        written.add(pa.table({"id": pa.array(ids), "value": pa.array(ids * 0.5)}), row_group_size=100_000)
    written.table()
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(folder)], capture_output=True, text=True, check=True
    )
    rows, peak = map(int, done.stdout.split())
    assert rows == files * count
    return peak


@pytest.mark.slow
def test_eight_times_the_rows_take_no_more_memory(tmp_path: Path) -> None:
    few, many = _peak(tmp_path / "few", 3), _peak(tmp_path / "many", 24)
    assert many < few * 2
    # All the rows of the larger table would be 150 MB.
    assert many < 60_000_000


_LIST = """
import sys
import pyarrow as pa
from lakepass.reader.table import Table

peak = files = 0
for batch in Table(sys.argv[1]).snapshot().file_batches(stats="json"):
    files += batch.num_rows
    del batch
    peak = max(peak, pa.total_allocated_bytes())
print(files, peak)
"""


def _log_peak(folder: Path, batches: int, row_group_size: int) -> int:
    """What listing the files of a checkpoint takes, with statistics that do not compress."""
    count = 10_000
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    schema = pa.schema(
        [("add", checkpoints.ADD), ("metaData", checkpoints.METADATA), ("protocol", checkpoints.PROTOCOL)]
    )
    state = {"metaData": checkpoints.pairs(checkpoints.metadata()), "protocol": checkpoints.protocol(False)}
    with pq.ParquetWriter(log / f"{1:020}.checkpoint.parquet", schema) as writer:
        for name in ("protocol", "metaData"):
            columns = [
                pa.array([state.get(field.name) if field.name == name else None], field.type)
                for field in schema
            ]
            writer.write_batch(pa.record_batch(columns, schema=schema))
        adds = [
            checkpoints.pairs(checkpoints.add(number))
            | {"stats": json.dumps({"numRecords": 1, "tag": secrets.token_hex(300)})}
            for number in range(count)
        ]
        files = pa.array(adds, checkpoints.ADD)
        columns = [files if field.name == "add" else pa.nulls(count, field.type) for field in schema]
        table = pa.Table.from_batches([pa.record_batch(columns, schema=schema)] * batches)
        writer.write_table(table, row_group_size=row_group_size)
    (log / "_last_checkpoint").write_text(json.dumps({"version": 1, "size": count * batches + 2}))
    done = subprocess.run(
        [sys.executable, "-c", _LIST, str(folder)], capture_output=True, text=True, check=True
    )
    listed, peak = map(int, done.stdout.split())
    assert listed == count * batches
    return peak


@pytest.mark.parametrize("row_group_size", [10_000, 1_000_000])
def test_eight_times_the_files_take_no_more_memory(tmp_path: Path, row_group_size: int) -> None:
    few = _log_peak(tmp_path / "few", 2, row_group_size)
    many = _log_peak(tmp_path / "many", 16, row_group_size)
    assert many < few * 1.5, (few, many)
