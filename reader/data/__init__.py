"""From a data file to logical rows: layout, types, deleted rows, partition values, row ids.

`files` opens a Parquet file and gives its rows in batches with their positions; `layout` finds the table's
columns in it; `conform` gives them the table's names and types; `deletion_vectors` tells which positions are
gone; `partition_values` and `variant` read the encodings that are Delta's and Parquet's own.
"""
