"""Writes the fixture tables with Delta Lake's Spark connector."""
