"""How much memory this process has held at most."""

from __future__ import annotations

import re
from pathlib import Path


def peak_mb() -> float:
    """Of this process alone: getrusage would begin with what the parent held when it forked."""
    match = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(match[1]) / 1024 if match else 0.0
