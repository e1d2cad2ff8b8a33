"""The data source beside Delta Lake's own reader, both on vended credentials of a broker and an S3 on
loopback.

    python -m bench.spark [--rows 3000000] [--small-files 1000] [--runs 2]

One session reads each table in turn: all columns into Spark's no-op sink, one column of ten, and a table of
many small files; by directory with both, and by URL with the data source. The first run of each is thrown
away. Seconds are those of the clock and, beside them, of processors in the JVM and its Python workers.
30,000,000 rows are 1.4 GB. The start of the session is printed too. SeaweedFS is the store, since it serves
faster than what reads it.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from bench.scan_tables import main as make_tables
from lakepass.spark_conf import lakepass_session, read_table
from tests.broker.server import running_broker
from tests.clouds import seaweedfs
from tests.clouds.run import running

BARS = {"all columns": 1.3, "one column": 2.0, "small files": 1.3}


@dataclass(frozen=True)
class Shared:
    """The tables as a recipient names them."""

    profile: Path

    def table(self, name: str, mode: str) -> str:
        return f"{self.profile}#bench.{mode}.{name}"


@contextmanager
def shared_tables(rows: int, files: int) -> Iterator[Shared]:
    with tempfile.TemporaryDirectory() as temporary, running(seaweedfs.start) as store:
        folder = Path(temporary)
        make_tables(folder, rows)
        make_small(folder / "small", files)
        bucket = store.create_bucket()
        storage = {
            "location": f"s3://{bucket}/",
            "aws": {
                "role_arn": store.role_arn,
                "endpoint": store.endpoint,
                "sts_endpoint": store.endpoint,
                "region": "us-east-1",
                "path_style": True,
                "access_key_id": store.broker.access_key_id,
                "secret_access_key": store.broker.secret_access_key,
            },
        }
        with running_broker(storage=[storage]) as broker:
            for name in ("plain", "small"):
                location = f"s3://{bucket}/{name}"
                store.seed(folder / name, location)
                for mode in ("dir", "url"):
                    broker.share_table(f"bench.{mode}.{name}", location, modes=(mode,))
            profile = folder / "bench.share"
            profile.touch(mode=0o600)
            profile.write_text(json.dumps(broker.recipient("bench", shares=["bench"])))
            yield Shared(profile)


def make_small(folder: Path, files: int) -> None:
    """A table of many small files, in one commit."""
    from deltalake import write_deltalake
    from deltalake.writer import WriterProperties

    rows = pa.table(
        {"id": pa.array(range(files * 100), pa.int64()), "part": [i // 100 for i in range(files * 100)]}
    )
    write_deltalake(
        folder, rows, partition_by="part", writer_properties=WriterProperties(compression="SNAPPY")
    )


@dataclass(frozen=True)
class Took:
    """Seconds of the clock and of processors."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:.2f}s ({self.cpu:.1f})"


def timed(spark: SparkSession, work: Callable[[], DataFrame], runs: int) -> Took:
    """Medians to have the DataFrame and to read it whole, after one run that does not count."""
    java: Any = spark._jvm
    driver = int(java.java.lang.ProcessHandle.current().pid())
    took = []
    for _ in range(runs + 1):
        started, used = time.perf_counter(), processors(driver)
        frame = work()
        frame.write.format("noop").mode("overwrite").save()
        took.append(Took(time.perf_counter() - started, processors(driver) - used))
    walls, cpus = [each.wall for each in took[1:]], [each.cpu for each in took[1:]]
    return Took(statistics.median(walls), statistics.median(cpus))


def processors(root: int) -> float:
    """Seconds that a process and all below it have used, those that have ended too."""
    process = psutil.Process(root)
    total = 0.0
    for each in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            total += sum(each.cpu_times()[:4])
    return total


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--small-files", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=2)
    arguments = parser.parse_args()
    logging.getLogger("lakepass.spark").setLevel(logging.ERROR)
    with shared_tables(arguments.rows, arguments.small_files) as shared:
        started = time.perf_counter()
        spark = lakepass_session(
            "bench",
            master="local[2]",
            conf={
                "spark.driver.memory": "2g",
                "spark.ui.enabled": "false",
                "spark.log.level": "ERROR",
                "spark.ui.showConsoleProgress": "false",
            },
        )
        print(f"session start: {time.perf_counter() - started:.1f} s")
        compare(spark, shared, arguments.runs)
        spark.stop()


def compare(spark: SparkSession, shared: Shared, runs: int) -> None:
    jobs: dict[str, tuple[str, list[str] | None]] = {
        "all columns": ("plain", None),
        "one column": ("plain", ["price"]),
        "small files": ("small", None),
    }
    print(f"{'':14}{'delta':>16}{'source':>16}{'ratio':>8}{'bar':>6}{'by url':>16}")
    for job, (name, columns) in jobs.items():
        directory, links = shared.table(name, "dir"), shared.table(name, "url")
        delta = timed(spark, partial(read_table, spark, directory, columns=columns), runs)
        native = timed(spark, partial(read_table, spark, directory, columns=columns, engine="native"), runs)
        url = timed(spark, partial(read_table, spark, links, columns=columns), runs)
        ratio = f"{native.wall / delta.wall:7.2f}x{BARS[job]:5.1f}x"
        print(f"{job:14}{delta!s:>16}{native!s:>16}{ratio}{url!s:>16}", flush=True)


if __name__ == "__main__":
    main()
