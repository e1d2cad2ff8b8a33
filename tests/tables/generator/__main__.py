"""Write the fixture tables again: `python -m tests.tables.generator [name …]`, or `make fixtures`."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from lakepass.spark_conf import lakepass_session
from tests.tables.generator import changes, checkpoints, deletion, mapping, placement, types, writing
from tests.tables.generator.fixture import DEFINITIONS, build

MODULES = (writing, types, deletion, mapping, checkpoints, changes, placement)
TARGET = Path(__file__).resolve().parent.parent


def main(names: list[str]) -> None:
    unknown = sorted(set(names) - set(DEFINITIONS))
    if unknown:
        sys.exit(f"{unknown[0]!r} is not a fixture table; there are {', '.join(sorted(DEFINITIONS))}.")
    spark = lakepass_session(
        "fixtures",
        master="local[2]",
        clouds=(),
        conf={
            "spark.driver.memory": "2g",
            "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "1",
            "spark.databricks.delta.snapshotPartitions": "1",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "ERROR",
        },
    )
    with tempfile.TemporaryDirectory(prefix="lakepass-fixtures-") as scratch:
        for name in names or DEFINITIONS:
            started = time.monotonic()
            build(spark, DEFINITIONS[name], Path(scratch), TARGET)
            print(f"{name}: {time.monotonic() - started:.1f} s", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
