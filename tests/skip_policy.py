"""A skipped test is counted and its reason shown; in CI (`CI=true`) one that nobody wrote down fails the run.

The written list is `allowed_skips.txt`: one pattern for a reason in each line, `*` standing for anything.
"""

from __future__ import annotations

import os
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ALLOWED = Path(__file__).with_name("allowed_skips.txt")


class SkipPolicy:
    """Watches the reports that reach the process started by hand, from every worker."""

    def __init__(self, allowed: list[str], *, strict: bool) -> None:
        self._allowed = allowed
        self._strict = strict
        self._reasons: Counter[str] = Counter()

    @classmethod
    def of_this_run(cls) -> SkipPolicy:
        """Strict in CI, with the list beside this file."""
        lines = (line.strip() for line in ALLOWED.read_text().splitlines())
        patterns = [line for line in lines if line and not line.startswith("#")]
        return cls(patterns, strict=os.environ.get("CI", "").lower() in ("1", "true"))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a skipped test; an expected failure is no skip."""
        if report.skipped and not hasattr(report, "wasxfail"):
            self._reasons[_reason(report)] += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count a skipped module."""
        if report.skipped:
            self._reasons[_reason(report)] += 1

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the run for a skip that is not on the list."""
        if self._strict and self._unlisted() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Tell how many were skipped, and why."""
        if not self._reasons:
            return
        terminalreporter.section(f"{sum(self._reasons.values())} skipped")
        for reason, count in self._reasons.most_common():
            listed = "" if reason not in self._unlisted() else "  [not on the list: fails in CI]"
            terminalreporter.line(f"{count:5} × {reason}{listed}")
        if self._strict and self._unlisted():
            terminalreporter.line(f"Fails: a skip in CI must be listed in tests/{ALLOWED.name}.", red=True)

    def _unlisted(self) -> set[str]:
        return {
            reason for reason in self._reasons if not any(fnmatchcase(reason, line) for line in self._allowed)
        }


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    where = report.longrepr
    text = str(where[2]) if isinstance(where, tuple) else str(where)
    return text.removeprefix("Skipped: ")
