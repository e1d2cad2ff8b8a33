"""Filters: SQL text or tuples become one small tree, which is evaluated on rows and on statistics.

`sql` and `tuples` parse; `binding` gives every node its column and type, by Spark's rules; `rows` computes
the tree on Arrow batches in three-valued logic; `bounds` asks it of minimum and maximum values, where the
answer is which of true, false and null are possible.
"""
