"""A Spark job that outlives its credentials many times, on executors that are processes of their own.

Run as a script with a JSON object: the table, how long each task dawdles, how early Delta's side renews, a
folder for the event log. Reads the table both ways at once, and prints a JSON object with what each found.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame

from lakepass.spark_conf import lakepass_session, read_table, register


def main(job: dict[str, Any]) -> None:
    spark = lakepass_session(
        "long job",
        master="local-cluster[2,2,1024]",
        conf={
            "spark.driver.memory": "1g",
            "spark.ui.enabled": "false",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": job["events"],
            "spark.eventLog.compress": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            # One task per file, so that files are opened all through the job.
            "spark.sql.files.maxPartitionBytes": "4096",
            "spark.sql.files.openCostInBytes": "4096",
            "spark.hadoop.fs.unitycatalog.renewal.leadTimeMillis": str(job["lead_ms"]),
            "spark.task.maxFailures": "1",
            "spark.databricks.delta.snapshotPartitions": "1",
            # Both reads go on at the same time, each on half of the slots.
            "spark.scheduler.mode": "FAIR",
        },
    )
    register(spark)
    frames = {
        "delta": read_table(spark, job["table"], engine="delta"),
        "native": spark.read.format("lakepass").option("partitionBytes", 1200).load(job["table"]),
    }

    def dawdle(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        time.sleep(job["seconds"])
        for batch in batches:
            yield pd.DataFrame({"rows": [len(batch)], "sum": [int(batch["id"].sum())]})

    def found(frame: DataFrame) -> dict[str, int]:
        parts = frame.select("id").mapInPandas(dawdle, "rows long, sum long").toPandas()
        return {"rows": int(parts["rows"].sum()), "sum": int(parts["sum"].sum()), "parts": len(parts)}

    started = time.monotonic()
    with ThreadPoolExecutor(len(frames)) as threads:
        results: dict[str, Any] = dict(zip(frames, threads.map(found, frames.values()), strict=True))
    results["took"] = time.monotonic() - started
    spark.stop()
    print("RESULT " + json.dumps(results))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
