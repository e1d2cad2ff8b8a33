"""A streaming job: follow a shared table with the native reader, which needs no jars, and append what is new.

    python examples/spark_stream.py profile.share#sales.eu.orders /tmp/copy --once

Started again, it goes on where it stopped: the checkpoint holds a version and a number of files.
"""

from __future__ import annotations

import argparse

from lakepass.spark_conf import lakepass_session, register


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", help="profile#share.schema.table")
    parser.add_argument("output", help="where to keep the copy")
    parser.add_argument("--once", action="store_true", help="read what is there, then stop")
    parser.add_argument("--master", help="Spark's master; spark-submit gives its own")
    arguments = parser.parse_args()

    spark = lakepass_session(app="follow", master=arguments.master, jars="none")
    register(spark)
    stream = (
        spark.readStream.format("lakepass")
        .option("maxFilesPerTrigger", 100)
        .option("skipChangeCommits", "true")  # commits that rewrite rows are passed over
        .load(arguments.table)
    )
    writer = (
        stream.writeStream.format("parquet")
        .option("path", arguments.output)
        .option("checkpointLocation", f"{arguments.output}/_checkpoint")
    )
    query = (
        writer.trigger(availableNow=True) if arguments.once else writer.trigger(processingTime="30 seconds")
    )
    query.start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
