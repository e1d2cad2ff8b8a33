"""Revenue by country, with polars."""

import polars as pl

from lakepass.reader import SharingClient

orders = SharingClient().table("sales.eu.orders").polars()
print(orders.group_by("country").agg(pl.col("amount").sum()).sort("country").collect())
