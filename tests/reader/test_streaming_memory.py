"""The memory of a stream does not follow the size of the table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

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
