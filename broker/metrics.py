"""Counts and durations for Prometheus; labels are routes and outcomes, never names."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest


class Metrics:
    """The metrics of one broker, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "lakepass_requests", "Requests answered", ["method", "route", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "lakepass_request_seconds",
            "Time to answer",
            ["route"],
            buckets=(0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60),
            registry=self.registry,
        )
        self._credentials = Counter(
            "lakepass_credentials",
            "Requests for a credential",
            ["interface", "cloud", "outcome"],
            registry=self.registry,
        )

    def count_credential(self, interface: str, cloud: str | None, outcome: str) -> None:
        """Count one request for a credential; `cloud` is None where it did not come to that."""
        self._credentials.labels(interface, cloud or "-", outcome).inc()

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests.labels(method, route, status).inc()
        self._seconds.labels(route).observe(seconds)

    def render(self) -> bytes:
        """The exposition text."""
        return generate_latest(self.registry)
