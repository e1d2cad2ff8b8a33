"""A Terraform provider that knows a recorded schema, the values some arguments take, and nothing else.

Terraform core checks a module's structure (types, required and unknown arguments, block counts, references)
against whatever schema the provider serves, so serving a recorded one checks modules for clouds whose
provider cannot be installed. A schema says nothing of values: `schemas/values.json` is our reading of what
the real providers check them for (enumerations, forms of ids and names), as regular expressions by argument.
They check mocked values too, so a test that mocks an id must mock its form. It runs in the virtual
environment of the `tf` package, which has the plugin protocol: `python schema_provider.py slice.json
values.json`. It never plans or applies: tests mock the provider.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tf.provider  # type: ignore[import-not-found]  # lives in an environment of its own
from tf.gen import tfplugin_pb2 as pb  # type: ignore[import-not-found]
from tf.runner import run_provider  # type: ignore[import-not-found]
from tf.utils import read_dynamic_value  # type: ignore[import-not-found]

# Field 11 of Schema.Attribute, `write_only`, is younger than the messages `tf` carries; as an unknown field
# it still travels to Terraform.
_WRITE_ONLY = b"\x58\x01"


def _attribute(name: str, recorded: dict[str, Any]) -> Any:
    message = pb.Schema.Attribute(
        name=name,
        required=recorded.get("required", False),
        optional=recorded.get("optional", False),
        computed=recorded.get("computed", False),
        sensitive=recorded.get("sensitive", False),
    )
    nested = recorded.get("nested_type")
    if nested:
        message.nested_type.CopyFrom(
            pb.Schema.Object(
                attributes=[_attribute(key, value) for key, value in nested["attributes"].items()],
                nesting=pb.Schema.Object.NestingMode.Value(nested["nesting_mode"].upper()),
            )
        )
    else:
        message.type = json.dumps(recorded["type"]).encode()
    if recorded.get("write_only"):
        return pb.Schema.Attribute.FromString(message.SerializeToString() + _WRITE_ONLY)
    return message


def _block(recorded: dict[str, Any]) -> Any:
    return pb.Schema.Block(
        attributes=[_attribute(name, value) for name, value in recorded.get("attributes", {}).items()],
        block_types=[
            pb.Schema.NestedBlock(
                type_name=name,
                block=_block(nested["block"]),
                nesting=pb.Schema.NestedBlock.NestingMode.Value(nested["nesting_mode"].upper()),
                min_items=nested.get("min_items", 0),
                max_items=nested.get("max_items", 0),
            )
            for name, nested in recorded.get("block_types", {}).items()
        ],
    )


def _schema(recorded: dict[str, Any]) -> Any:
    return pb.Schema(version=recorded.get("version", 0), block=_block(recorded["block"]))


def _computed_but_set(recorded: dict[str, Any], value: Any, path: str = "") -> list[str]:
    """The attributes that are the provider's to set, and are set; core leaves this check to providers."""
    if not isinstance(value, dict):
        return []
    found = [
        f"{path}{name}"
        for name, attribute in recorded.get("attributes", {}).items()
        if attribute.get("computed") and not attribute.get("optional") and value.get(name) is not None
    ]
    for name, nested in recorded.get("block_types", {}).items():
        inner = value.get(name)
        for item in inner if isinstance(inner, list) else [inner]:
            found += _computed_but_set(nested["block"], item, f"{path}{name}.")
    return found


def _found(value: Any, path: list[str]) -> Iterator[str]:
    """The values at a path of blocks and an argument that are known, as text."""
    if isinstance(value, list):
        for item in value:
            yield from _found(item, path)
    elif path:
        if isinstance(value, dict):
            yield from _found(value.get(path[0]), path[1:])
    elif isinstance(value, str | int | float):
        yield str(value)


def _refused(values: dict[str, str], type_name: str, config: Any) -> list[str]:
    """What an argument holds that is none of its values."""
    return [
        f"{argument} cannot be {value!r}: expected {pattern}"
        for argument, pattern in values.items()
        if argument.startswith(f"{type_name}.")
        for value in _found(config, argument.split(".")[1:])
        if not re.search(pattern, value)
    ]


class RecordedSchema(tf.provider.ProviderServicer):  # type: ignore[misc]
    """Answers what `terraform validate` and mocked tests ask, from the recorded schema."""

    def GetProviderSchema(self, request: Any, context: Any) -> Any:
        recorded = self.app["schema"]
        return pb.GetProviderSchema.Response(
            provider=_schema(recorded["provider"]),
            resource_schemas={name: _schema(value) for name, value in recorded["resource_schemas"].items()},
            data_source_schemas={
                name: _schema(value) for name, value in recorded["data_source_schemas"].items()
            },
        )

    def ValidateProviderConfig(self, request: Any, context: Any) -> Any:
        return pb.ValidateProviderConfig.Response()

    def ValidateResourceConfig(self, request: Any, context: Any) -> Any:
        block = self.app["schema"]["resource_schemas"][request.type_name]["block"]
        config = read_dynamic_value(request.config)
        found = [f"{request.type_name}.{name} cannot be set" for name in _computed_but_set(block, config)]
        found += _refused(self.app["values"], request.type_name, config)
        return pb.ValidateResourceConfig.Response(
            diagnostics=[pb.Diagnostic(severity=pb.Diagnostic.ERROR, summary=summary) for summary in found]
        )

    def ValidateDataResourceConfig(self, request: Any, context: Any) -> Any:
        return pb.ValidateDataResourceConfig.Response()


if __name__ == "__main__":
    # The runner builds its servicer by this name; ours takes the schema where theirs takes a provider.
    tf.provider.ProviderServicer = RecordedSchema
    schema, values = (json.loads(Path(file).read_text()) for file in sys.argv[1:3])
    run_provider({"schema": schema, "values": values}, argv=sys.argv[:1])
