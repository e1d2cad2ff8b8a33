"""A Containerfile as its instructions: enough of the format for ours, and an error for anything else."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

_KNOWN = frozenset({"ARG", "FROM", "ENV", "WORKDIR", "COPY", "RUN", "LABEL", "USER", "EXPOSE", "STOPSIGNAL"})
_KNOWN |= {"HEALTHCHECK", "ENTRYPOINT", "CMD"}
_FLAG = re.compile(r"--([a-z-]+)=(\S+)\s+")


@dataclass(frozen=True)
class Instruction:
    """One instruction: its word, its `--flags`, and the rest."""

    word: str
    flags: dict[str, str]
    rest: str

    @property
    def words(self) -> list[str]:
        """The rest as words: a JSON array in exec form, else as a shell would split it."""
        return json.loads(self.rest) if self.rest.startswith("[") else shlex.split(self.rest)

    @property
    def pairs(self) -> dict[str, str]:
        """The rest as `KEY=value` pairs."""
        return dict(word.split("=", 1) for word in self.words)


@dataclass
class Stage:
    """What follows one FROM."""

    base: str
    name: str | None
    instructions: list[Instruction] = field(default_factory=list)

    def last(self, word: str) -> Instruction:
        """The instruction that counts where the last one of its kind does."""
        return [one for one in self.instructions if one.word == word][-1]


def parse(path: Path) -> list[Stage]:
    """The stages of a Containerfile, arguments filled in with their defaults."""
    text = re.sub(r"^\s*#.*\n", "", path.read_text(), flags=re.MULTILINE)
    stages: list[Stage] = []
    arguments: dict[str, str] = {}
    for line in text.replace("\\\n", " ").splitlines():
        if not line.strip():
            continue
        word, _, rest = line.strip().partition(" ")
        if word not in _KNOWN:
            raise ValueError(f"{path.name} has the instruction {word}, which this reader does not know")
        for name, value in arguments.items():
            rest = rest.replace(f"${{{name}}}", value)
        rest = rest.strip()
        flags: dict[str, str] = {}
        while match := _FLAG.match(rest):
            flags[match[1]] = match[2]
            rest = rest[match.end() :]
        if word == "ARG":
            name, _, value = rest.partition("=")
            arguments[name] = value
        elif word == "FROM":
            base, _, name = rest.partition(" AS ")
            stages.append(Stage(base, name or None))
        else:
            stages[-1].instructions.append(Instruction(word, flags, rest.strip()))
    return stages
