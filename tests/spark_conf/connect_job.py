"""The data source over Spark Connect, as a script: the client has no JVM, the server is a process of its own.

Takes the table; prints a JSON object with the rows of one query.
"""

from __future__ import annotations

import json
import os
import sys

from pyspark.sql import SparkSession

from lakepass.spark_conf import create_views, register


def main(table: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    assert "connect" in type(spark).__module__
    register(spark)
    frame = spark.read.format("lakepass").option("columns", "id, text").load(table).where("id > 95")
    rows = sorted(row["id"] for row in frame.collect())
    profile = table.partition("#")[0]
    views = create_views(spark, profile, "sales", engine="native")
    print("RESULT " + json.dumps({"ids": rows, "views": len(views)}))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
