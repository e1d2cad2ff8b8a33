#!/bin/sh
# The nightly job on a cluster. Arguments: profile#share.schema.table, group column, value column, output.
# The profile file is at the same path on every node, or is an https address.
set -e
job="$(dirname "$0")/spark_nightly.py"
# Jars and extensions as spark-submit takes them; a cluster that has Delta 4.4 and its connectors needs none.
eval "exec \"${SPARK_SUBMIT:-spark-submit}\" --master \"${MASTER:-local[2]}\" \
  $(lakepass spark-conf --session --format submit) \"\$job\" --jars provided \"\$@\""
