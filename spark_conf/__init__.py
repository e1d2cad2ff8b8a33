"""Shared tables in PySpark: Hadoop configuration from a credential, a session, and a data source."""

from lakepass.spark_conf.session import configure, lakepass_session

__all__ = ["configure", "lakepass_session"]
