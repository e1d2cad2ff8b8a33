"""Shared tables in PySpark: Hadoop configuration from a credential, a session, two ways to read.

`read_table` reads with Delta Lake's own reader, on a credential scoped to that one read. `register` makes
`spark.read.format("lakepass")` known: the native reader on the executors, with no jars.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lakepass.spark_conf.errors import SparkReadError, told_in_words
from lakepass.spark_conf.hadoop import Renewal, hadoop_conf, spark_conf
from lakepass.spark_conf.scoped import StaticCredentialWarning, read_options
from lakepass.spark_conf.session import configure, lakepass_session

if TYPE_CHECKING:
    from lakepass.spark_conf.reading import changes, create_views, read_table, stream_table
    from lakepass.spark_conf.source import register

__all__ = [
    "Renewal",
    "SparkReadError",
    "StaticCredentialWarning",
    "changes",
    "configure",
    "create_views",
    "hadoop_conf",
    "lakepass_session",
    "read_options",
    "read_table",
    "register",
    "spark_conf",
    "stream_table",
    "told_in_words",
]

# What needs PySpark is imported when it is asked for: configuration alone works without.
_LATER = dict.fromkeys(("changes", "create_views", "read_table", "stream_table"), "reading")
_LATER["register"] = "source"


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
