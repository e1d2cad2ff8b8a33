"""The HTTP routes, one module per concern; thin over the rest of the broker."""
