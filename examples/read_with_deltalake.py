"""The deltalake package on a vended credential, which it renews by itself."""

from lakepass.reader import SharingClient

orders = SharingClient().table("sales.eu.orders").deltalake()
print(f"version {orders.version()}, {orders.to_pyarrow_table(columns=['id']).num_rows} rows")
