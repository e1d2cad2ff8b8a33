"""The `lakepass` command."""
