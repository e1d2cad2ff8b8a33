"""Where tables are stored: local directories, S3, ADLS, Cloud Storage and plain HTTP, behind one small
interface.
"""

from lakepass.reader.storage.interface import DEFAULT_LIMIT, FileStatus, Storage, TooLargeError
from lakepass.reader.storage.locations import Storages, open_storage

__all__ = ["DEFAULT_LIMIT", "FileStatus", "Storage", "Storages", "TooLargeError", "open_storage"]
