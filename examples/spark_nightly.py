"""A nightly aggregation: read a shared table with Delta Lake's own reader, write the result as Parquet.

    python examples/spark_nightly.py profile.share#sales.eu.orders place v /tmp/report

or on a cluster by `spark-submit`, as in examples/spark_submit.sh.
"""

from __future__ import annotations

import argparse

from pyspark.sql import functions as F

from lakepass.spark_conf import lakepass_session, read_table, told_in_words


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", help="profile#share.schema.table")
    parser.add_argument("group", help="the column to group by")
    parser.add_argument("value", help="the column to add up")
    parser.add_argument("output", help="where to write the report")
    parser.add_argument("--master", help="Spark's master; spark-submit gives its own")
    parser.add_argument("--jars", default="maven", choices=["maven", "provided"], help="where jars come from")
    arguments = parser.parse_args()

    spark = lakepass_session(app="nightly report", master=arguments.master, jars=arguments.jars)
    # The credential opens this table only, and is renewed for as long as the job takes.
    orders = read_table(spark, arguments.table)
    report = orders.groupBy(arguments.group).agg(
        F.count("*").alias("rows"), F.sum(arguments.value).alias("total")
    )
    with told_in_words(arguments.table):  # a grant that ends meanwhile, a broker that is gone: in words
        report.coalesce(1).write.mode("overwrite").parquet(arguments.output)
        groups = report.count()
    print(f"{groups} groups written to {arguments.output}")
    spark.stop()


if __name__ == "__main__":
    main()
