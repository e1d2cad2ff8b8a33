"""Google's Credential Access Boundary, evaluated with cel-python.

Our reading of "Overview of Credential Access Boundaries": a request is within the boundary when a rule
names its bucket, the rule's role holds the permission, and its condition is true; `resource.name` is the
object's, or the bucket's for a list, whose prefix is the attribute
`storage.googleapis.com/objectListPrefix`.
"""

from __future__ import annotations

from typing import Any

import celpy
from celpy import celtypes
from celpy.adapter import json_to_cel

VIEWER = frozenset(
    {"storage.objects.get", "storage.objects.list", "storage.folders.get", "storage.folders.list"}
)


def within(
    boundary: dict[str, Any], permission: str, bucket: str, name: str | None, prefix: str = ""
) -> bool:
    """Whether a request (`name` None: a list with `prefix`) is within the boundary."""
    for rule in boundary["accessBoundary"]["accessBoundaryRules"]:
        if rule["availableResource"] != f"//storage.googleapis.com/projects/_/buckets/{bucket}":
            continue
        if rule["availablePermissions"] != ["inRole:roles/storage.objectViewer"] or permission not in VIEWER:
            continue
        resource = f"projects/_/buckets/{bucket}" + ("" if name is None else f"/objects/{name}")
        attributes = {"storage.googleapis.com/objectListPrefix": prefix} if name is None and prefix else {}
        if _true(rule["availabilityCondition"]["expression"], resource, attributes):
            return True
    return False


def can_read(boundary: dict[str, Any], bucket: str, name: str) -> bool:
    """Whether reading an object is within the boundary."""
    return within(boundary, "storage.objects.get", bucket, name)


def can_list(boundary: dict[str, Any], bucket: str, prefix: str) -> bool:
    """Whether a list with a prefix is within the boundary."""
    return within(boundary, "storage.objects.list", bucket, None, prefix)


def _true(expression: str, resource: str, attributes: dict[str, str]) -> bool:
    def get_attribute(_api: Any, name: Any, default: Any) -> celtypes.StringType:
        return celtypes.StringType(attributes.get(str(name), str(default)))

    environment = celpy.Environment()
    program = environment.program(environment.compile(expression), functions={"getAttribute": get_attribute})
    named = {"resource": {"name": resource}, "api": {}}
    return bool(program.evaluate({name: json_to_cel(value) for name, value in named.items()}))
