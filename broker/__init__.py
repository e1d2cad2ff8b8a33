"""The broker: a Delta Sharing server with recipients of its own."""
