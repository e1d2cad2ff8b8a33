"""SQL over a shared table, with DuckDB."""

import duckdb

from lakepass.reader import SharingClient

connection = duckdb.connect()
orders = SharingClient().table("sales.eu.orders").duckdb(connection)
print(
    connection.sql(
        "select country, count(*) as orders, sum(amount) as revenue from orders group by all order by all"
    )
)
