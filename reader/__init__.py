"""Read Delta tables: from a location, or as a recipient of a share.

>>> from lakepass.reader import Table
>>> table = Table("/data/orders")
"""

from lakepass.reader.errors import DeltaError
from lakepass.reader.log.ratified import RatifiedCommit
from lakepass.reader.snapshot import Snapshot
from lakepass.reader.table import Table

__all__ = ["DeltaError", "RatifiedCommit", "Snapshot", "Table"]
