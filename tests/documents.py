"""The examples in a document, taken out and run, so that they cannot rot.

Every fenced block in `python`, `bash`, `sh` or `console` is run, in order, in one folder: Python blocks
share their names as the cells of a notebook do; a shell block stops at its first failure; of a console
block the lines after `$ ` are run. A block after `<!-- not run: reason -->` is not. Run as a program it
takes the blocks as JSON.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path

_FENCE = re.compile(r"^(?P<fence>```+|~~~+)\s*(?P<language>[\w+-]*)[^\n]*$")
_NOT_RUN = re.compile(r"^<!--\s*not run:\s*(?P<reason>.+?)\s*-->$")
RUNNABLE = {"python": "python", "bash": "shell", "sh": "shell", "shell": "shell", "console": "console"}


@dataclass(frozen=True)
class Block:
    """A fenced block of a document."""

    language: str
    code: str
    line: int
    """Where its code begins, counted from one."""
    not_run: str | None
    """Why it is not run."""

    @property
    def kind(self) -> str | None:
        """How it is run; None when there is nothing to run, or only the project's own `make` commands."""
        kind = RUNNABLE.get(self.language)
        commands = [line for line in self.shell().splitlines() if line.strip()] if kind == "console" else []
        return None if commands and all(line.startswith("make ") for line in commands) else kind

    def shell(self) -> str:
        """The commands of a shell or console block."""
        if self.language != "console":
            return self.code
        commands: list[str] = []
        for line in self.code.splitlines():
            if line.startswith("$ "):
                commands.append(line.removeprefix("$ "))
            elif line.startswith("> ") and commands:
                commands.append(line.removeprefix("> "))
        return "\n".join(commands)


def blocks(text: str) -> list[Block]:
    """Every fenced block, in order."""
    found: list[Block] = []
    lines = text.splitlines()
    reason: str | None = None
    number = 0
    while number < len(lines):
        line = lines[number].strip()
        fence = _FENCE.match(line)
        if fence is None:
            marked = _NOT_RUN.match(line)
            if marked is not None:
                reason = marked["reason"]
            elif line:
                reason = None
            number += 1
            continue
        start = number + 1
        number = start
        while number < len(lines) and lines[number].strip() != fence["fence"]:
            number += 1
        if number == len(lines):
            raise ValueError(f"The block that begins in line {start} has no end.")
        indent = len(lines[start - 1]) - len(lines[start - 1].lstrip())
        code = "\n".join(each[indent:] for each in lines[start:number])
        found.append(Block(fence["language"].lower(), code, start + 1, reason))
        reason = None
        number += 1
    return found


def run(document: Path, folder: Path, environment: dict[str, str], seconds: float) -> None:
    """Run a document's blocks in `folder`; the error of one that fails names its line."""
    wanted = [block for block in blocks(document.read_text()) if block.kind and block.not_run is None]
    done = subprocess.run(
        [sys.executable, __file__, document.name],
        input=json.dumps([asdict(block) for block in wanted]),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )
    if done.returncode:
        raise AssertionError(f"{done.stdout[-3000:]}\n{done.stderr[-6000:]}")


def _main() -> int:
    name = sys.argv[1]
    given = [Block(**block) for block in json.load(sys.stdin)]
    sys.path[0] = ""
    names: dict[str, object] = {"__name__": "__main__"}
    for block in given:
        where = f"{name}:{block.line} ({block.language})"
        print(f"--- {where}", flush=True)
        if block.kind == "python":
            try:
                # Padded with empty lines, so that a traceback names the document's own.
                exec(compile("\n" * (block.line - 1) + block.code, name, "exec"), names)
            except Exception:
                traceback.print_exc()
                print(f"{where} failed", file=sys.stderr)
                return 1
        elif subprocess.run(["bash", "-euo", "pipefail", "-c", block.shell()], check=False).returncode:
            print(f"{where} failed", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main())
