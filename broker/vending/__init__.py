"""Vending: temporary, read-only credentials for one directory, on AWS, Azure and Google Cloud.

For each cloud a pure function turns a location into a scope document (`aws_scope`, `azure_scope`,
`gcp_scope`) and a thin caller has the cloud issue a credential for it (`aws`, `azure`, `gcp`). A cache that
knows neither stands in front. What cannot be scoped is refused, never widened. README.md shows the
documents and says what revocation means.
"""

from lakepass.broker.vending.errors import CloudRefused, CloudUnavailable, ScopeRefused, VendingError
from lakepass.broker.vending.grantee import Grantee
from lakepass.broker.vending.service import Vending
from lakepass.broker.vending.vendor import Vendor, vendor_for

__all__ = [
    "CloudRefused",
    "CloudUnavailable",
    "Grantee",
    "ScopeRefused",
    "Vending",
    "VendingError",
    "Vendor",
    "vendor_for",
]
