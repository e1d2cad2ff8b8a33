"""The catalog: what is shared, and with whom, in SQL."""
