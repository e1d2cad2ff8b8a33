"""Counts and durations for Prometheus; labels are routes and outcomes, never names."""

from __future__ import annotations

from functools import lru_cache

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest


class Metrics:
    """The metrics of one broker, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        requests = Counter(
            "lakepass_requests", "Requests answered", ["method", "route", "status"], registry=self.registry
        )
        seconds = Histogram(
            "lakepass_request_seconds",
            "Time to answer",
            ["route"],
            buckets=(0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60),
            registry=self.registry,
        )
        credentials = Counter(
            "lakepass_credentials",
            "Requests for a credential",
            ["interface", "cloud", "outcome"],
            registry=self.registry,
        )
        # Labels are few, and finding their counter anew for each request would cost more than counting.
        self._request = lru_cache(1024)(requests.labels)
        self._duration = lru_cache(256)(seconds.labels)
        self._credential = lru_cache(256)(credentials.labels)

    def count_credential(self, interface: str, cloud: str | None, outcome: str) -> None:
        """Count one request for a credential; `cloud` is None where it did not come to that."""
        self._credential(interface, cloud or "-", outcome).inc()

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._request(method, route, status).inc()
        self._duration(route).observe(seconds)

    def render(self) -> bytes:
        """The exposition text."""
        return generate_latest(self.registry)
