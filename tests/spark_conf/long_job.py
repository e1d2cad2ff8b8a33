"""A Spark job that outlives its credentials many times, on executors that are processes of their own.

Run as a script with a JSON object: the table, the engine, how long each task dawdles, a folder for the
event log. Prints a JSON object with the rows it counted.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import pandas as pd

from lakepass.spark_conf import lakepass_session, read_table, register


def main(job: dict[str, Any]) -> None:
    spark = lakepass_session(
        "long job",
        master="local-cluster[2,1,1024]",
        jars="none" if job["engine"] == "native" else "maven",
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
        },
    )

    def dawdle(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        time.sleep(job["seconds"])
        for batch in batches:
            yield pd.DataFrame({"rows": [len(batch)], "sum": [int(batch["id"].sum())]})

    started = time.monotonic()
    if job["engine"] == "native":
        register(spark)
        frame = spark.read.format("lakepass").option("partitionBytes", 1200).load(job["table"])
    else:
        frame = read_table(spark, job["table"], engine="delta")
    parts = frame.select("id").mapInPandas(dawdle, "rows long, sum long")
    found = parts.toPandas()
    result = {
        "rows": int(found["rows"].sum()),
        "sum": int(found["sum"].sum()),
        "tasks": frame.rdd.getNumPartitions(),
        "took": time.monotonic() - started,
    }
    spark.stop()
    print("RESULT " + json.dumps(result))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
