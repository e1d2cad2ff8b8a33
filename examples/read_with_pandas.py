"""The large German orders of a shared table, as a pandas data frame."""

from lakepass.reader import SharingClient

table = SharingClient().table("sales.eu.orders")
frame = table.to_pandas(columns=["id", "day", "amount"], filter="country = 'DE' and amount > 90")
print(frame.sort_values("amount", ascending=False).head())
print(f"{len(frame)} orders, read by {table.access}")
