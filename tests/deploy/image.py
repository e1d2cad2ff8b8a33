"""The image without a container engine: its instructions carried out in an empty folder, entered by chroot.

A mount namespace of its own puts the machine's system folders, read-only, below the folder, and a Python of
the image's version at /usr/local as the official image has it, with a layer on top that takes changes. Only
the kernel is needed; where it refuses (no root, no namespaces), `Unavailable` says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.clouds.run import Unavailable
from tests.deploy.containerfile import Instruction, Stage

_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "usr", "etc")


@dataclass
class Root:
    """The file system of one stage."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    directory: str = "/"

    @property
    def tree(self) -> Path:
        """What the instructions made; `layer` beside it is what they changed of Python's own folder."""
        return self.folder / "tree"

    def command(self, words: Sequence[str], *, user: str | None = None, read_only: bool = False) -> list[str]:
        """The command that runs `words` inside; it becomes them, so a signal to it reaches them."""
        script = "\n".join(["set -e", *self._mounts(read_only), 'exec chroot "$@"'])
        chroot = [f"--userspec={user}"] if user else []
        inside = ["/usr/bin/env", "-i", f"--chdir={self.directory}"]
        inside += [f"{name}={value}" for name, value in self.environment.items()]
        namespace = ["unshare", "--mount", "--propagation", "private"]
        return [*namespace, "sh", "-c", script, "sh", *chroot, str(self.tree), *inside, *words]

    def _mounts(self, read_only: bool) -> list[str]:
        tree, layer = self.tree, self.folder / "layer"
        lines = []
        for name in _SYSTEM:
            if Path("/", name).is_dir() and not Path("/", name).is_symlink():
                lines.append(f"mount --rbind -o ro /{name} {tree}/{name}")
        prefix = Path(sys.base_prefix)
        changes = f"lowerdir={prefix},upperdir={layer}/upper,workdir={layer}/work"
        lines.append(f"mount -t overlay overlay -o {changes} {tree}/usr/local")
        # Its shared library is looked for where it was built.
        lines.append(f"mount --bind -o ro {prefix} {tree}{prefix}")
        lines += [f"mount --rbind /{name} {tree}/{name}" for name in ("proc", "dev")]
        if read_only:
            lines.append(f"mount --bind {tree} {tree} && mount -o remount,bind,ro {tree}")
            # A bind of the folder hides what was mounted below it: once more, then nothing is writable.
            lines += lines[: lines.index(lines[-1])]
            lines.append(f"mount -o remount,ro {tree}/usr/local")
        return lines


def prepare(folder: Path) -> Root:
    """An empty root, with the places where the machine's folders are mounted."""
    root = Root(folder)
    for name in ("proc", "dev", "tmp", "root", str(sys.base_prefix).lstrip("/")):
        (root.tree / name).mkdir(parents=True, exist_ok=True)
    (root.tree / "tmp").chmod(0o1777)
    for name in _SYSTEM:
        place = Path("/", name)
        if place.is_symlink():
            (root.tree / name).symlink_to(place.readlink())
        elif place.is_dir():
            (root.tree / name).mkdir()
    for name in ("upper", "work"):
        (folder / "layer" / name).mkdir(parents=True)
    tried = subprocess.run(root.command(["/bin/true"]), capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        raise Unavailable(f"this machine does not let a test mount a root of its own: {tried.stderr.strip()}")
    return root


def build(stages: Sequence[Stage], context: Path, folder: Path, cache: Path) -> Root:
    """Carry out every stage; gives the root of the last."""
    roots: dict[str | None, Root] = {}
    root = prepare(folder / "stage-0")
    for number, stage in enumerate(stages):
        if number:
            root = prepare(folder / f"stage-{number}")
        roots[stage.name] = root
        root.environment = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
        for instruction in stage.instructions:
            _carry_out(instruction, root, roots, context, cache)
    return root


def _carry_out(
    instruction: Instruction, root: Root, roots: dict[str | None, Root], context: Path, cache: Path
) -> None:
    match instruction.word:
        case "ENV":
            root.environment |= instruction.pairs
        case "WORKDIR":
            root.directory = instruction.rest
            (root.tree / instruction.rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
        case "COPY":
            source = context if "from" not in instruction.flags else roots[instruction.flags["from"]].tree
            _copy(instruction, source, root)
        case "RUN":
            _run(instruction, root, cache)


def _copy(instruction: Instruction, source: Path, root: Root) -> None:
    *names, target = instruction.words
    place = root.tree / os.path.join(root.directory, target).lstrip("/")  # noqa: PTH118 - an absolute one wins
    for name in names:
        origin = source / name.lstrip("/")
        if origin.is_dir():
            ignored = None if "from" in instruction.flags else shutil.ignore_patterns("__pycache__")
            shutil.copytree(origin, place, symlinks=True, dirs_exist_ok=True, ignore=ignored)
        else:
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy(origin, place)


def _run(instruction: Instruction, root: Root, cache: Path) -> None:
    # How this machine reaches the package index is no part of the image.
    passed = {
        name: value
        for name, value in os.environ.items()
        if name.startswith("PIP_") or "proxy" in name.lower()
    }
    mounted = root.tree / "root" / ".cache" / "pip"
    mounted.mkdir(parents=True, exist_ok=True)
    cache.mkdir(parents=True, exist_ok=True)
    inside = Root(root.folder, {"HOME": "/root", **passed, **root.environment}, root.directory)
    command = inside.command(["/bin/sh", "-c", instruction.rest])
    command[6] = command[6].replace("exec chroot", f"mount --bind {cache} {mounted}\nexec chroot")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"RUN {instruction.rest}\n{done.stdout[-2000:]}{done.stderr[-3000:]}"
