"""Proving a deployment: a credential is vended as a recipient would get it, and then attacked at the real
store.

`probe` speaks to a store with that credential and nothing else; `checks` says what must work and what must
be refused. Nothing that exists is ever written to, copied over or deleted: an attack that succeeds leaves
at most one object with a random name, which is then taken away again.
"""

from lakepass.broker.vending.verification.checks import Check, Verdict
from lakepass.broker.vending.verification.tables import Subject, TableReport, verify_table

__all__ = ["Check", "Subject", "TableReport", "Verdict", "verify_table"]
