"""The audit trail: every credential given and every one refused, durable before the answer leaves."""

from lakepass.broker.audit.events import Outcome, VendEvent
from lakepass.broker.audit.log import AuditLog, AuditUnavailable

__all__ = ["AuditLog", "AuditUnavailable", "Outcome", "VendEvent"]
