"""How a table of the catalog becomes a Delta table that the reader opens."""
