#!/usr/bin/env bash
# A provider's first share: two tables, one recipient, proof that the credential opens nothing else.
# Needs LAKEPASS_CONFIG (or lakepass.yaml here), with a `storage:` entry for the bucket; the tables must exist.
set -euo pipefail

lakepass config check
lakepass table add trade.eu.orders s3://lake/sales/orders --access url,dir
lakepass table add trade.eu.returns s3://lake/sales/returns --access url
lakepass recipient add northwind --share trade
lakepass token issue northwind --lifetime 90d --output northwind.share
lakepass verify trade.eu.orders
lakepass grant list
