"""Cut the recorded provider schemas down to the types our modules use.

`python -m tests.deploy.schemas.slice ../shared/terraform` rewrites the slices beside this file from the whole
schemas, which the real providers print with `terraform providers schema -json`. Descriptions are dropped.
Run it after a module starts to use a new resource type; a test fails when that was forgotten.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MODULES = HERE.parents[2] / "terraform"
VERSIONS = {"aws": "5.100.0", "azurerm": "5.2.0", "google": "6.50.0"}
VALUES = HERE / "values.json"
FOLDERS = {"aws": "aws", "azurerm": "azure", "google": "gcp"}
_USED = re.compile(r'^(resource|data) "(\w+)"', re.MULTILINE)
_KEPT = {"type", "required", "optional", "computed", "sensitive", "write_only", "nested_type"}


def slice_path(provider: str) -> Path:
    """The slice of a provider's schema, named with the version it was recorded from."""
    return HERE / f"{provider}-{VERSIONS[provider]}.json"


def used_types(provider: str) -> dict[str, set[str]]:
    """The resource and data source types that the modules of one cloud name."""
    used: dict[str, set[str]] = {"resource_schemas": set(), "data_source_schemas": set()}
    for file in (MODULES / FOLDERS[provider]).rglob("*.tf"):
        if ".terraform" in file.parts:
            continue
        for kind, name in _USED.findall(file.read_text()):
            if name.startswith(f"{provider}_"):
                used["resource_schemas" if kind == "resource" else "data_source_schemas"].add(name)
    return used


def _attribute(name: str, recorded: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in recorded.items() if key in _KEPT and value}
    # The typed package that the google schema was recorded from has no such flag; the names tell.
    if name.endswith("_wo"):
        kept["write_only"] = True
    return kept


def _block(recorded: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if recorded.get("attributes"):
        out["attributes"] = {k: _attribute(k, v) for k, v in sorted(recorded["attributes"].items())}
    if recorded.get("block_types"):
        out["block_types"] = {
            name: {key: value for key, value in nested.items() if key != "block"}
            | {"block": _block(nested["block"])}
            for name, nested in sorted(recorded["block_types"].items())
        }
    return out


def cut(whole: dict[str, Any], used: dict[str, set[str]]) -> dict[str, Any]:
    """The part of a recorded schema that the modules use."""
    return {
        "provider": {"block": _block(whole["provider"]["block"])},
        **{
            kind: {name: {"block": _block(whole[kind][name]["block"])} for name in sorted(names)}
            for kind, names in used.items()
        },
    }


def main(folder: Path) -> None:
    """Write every slice anew."""
    for provider, version in VERSIONS.items():
        with gzip.open(folder / f"{provider}-{version}.json.gz") as file:
            whole = json.load(file)
        text = json.dumps(cut(whole, used_types(provider)), separators=(",", ":"), sort_keys=True)
        # One line a type: a change of the slice reads as the types it touches.
        text = re.sub(r',("(?:aws|azurerm|google)_\w+":\{"block")', r",\n\1", text)
        slice_path(provider).write_text(text + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
