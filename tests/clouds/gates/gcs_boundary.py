"""A Credential Access Boundary, taken apart when a token is exchanged and evaluated on every request with
a real CEL: our reading of "Overview of Credential Access Boundaries" and "Define a Credential Access
Boundary" (cloud.google.com/iam/docs/downscoping-short-lived-credentials, …/storage/docs/…/cab).

A request is inside when one rule is for its bucket, makes the permission available, and has no condition
or one that is true. A list is a request on the bucket, with the prefix as its attribute; reading is a
request on the object.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import celpy
import lark
from celpy import celtypes
from celpy.adapter import json_to_cel
from celpy.celparser import CELParseError
from celpy.evaluation import CELEvalError

_LIST_PREFIX = "storage.googleapis.com/objectListPrefix"
_BUCKETS = "//storage.googleapis.com/projects/_/buckets/"
_MOST_RULES = 10
_FUNCTIONS = {"startsWith", "endsWith", "getAttribute"}
"""What a condition may call; `matches` is refused by the real service too."""

ROLES: dict[str, frozenset[str]] = {
    "roles/storage.objectViewer": frozenset({"storage.objects.get", "storage.objects.list"}),
    "roles/storage.objectCreator": frozenset({"storage.objects.create"}),
    "roles/storage.legacyObjectReader": frozenset({"storage.objects.get"}),
    "roles/storage.legacyBucketReader": frozenset({"storage.objects.list", "storage.buckets.get"}),
    "roles/storage.objectAdmin": frozenset(
        {f"storage.objects.{verb}" for verb in ("get", "list", "create", "delete", "update")}
    ),
}


class BoundaryError(ValueError):
    """The boundary is not one that the exchange takes."""


@dataclass(frozen=True)
class Asked:
    """What a request needs."""

    permission: str
    bucket: str
    object_name: str | None = None
    list_prefix: str = ""

    @property
    def resource(self) -> str:
        """The full name of what is asked for."""
        bucket = f"projects/_/buckets/{self.bucket}"
        return bucket if self.object_name is None else f"{bucket}/objects/{self.object_name}"


@dataclass(frozen=True)
class _Rule:
    bucket: str
    permissions: frozenset[str]
    condition: Callable[[Asked], bool]

    def allows(self, asked: Asked) -> bool:
        return asked.bucket == self.bucket and asked.permission in self.permissions and self.condition(asked)


@dataclass(frozen=True)
class Boundary:
    """The upper bound of what a token can do."""

    rules: tuple[_Rule, ...]

    @classmethod
    def parse(cls, options: Any) -> Boundary:
        """The boundary in an exchange's `options`."""
        try:
            listed = options["accessBoundary"]["accessBoundaryRules"]
            if not 1 <= len(listed) <= _MOST_RULES:
                raise BoundaryError(f"A boundary has one to {_MOST_RULES} rules, not {len(listed)}.")
            return cls(tuple(_rule(rule) for rule in listed))
        except (KeyError, TypeError) as error:
            raise BoundaryError(f"The boundary is malformed: {error!r}.") from error

    def allows(self, asked: Asked) -> bool:
        """Whether the request is inside."""
        return any(rule.allows(asked) for rule in self.rules)


def _rule(rule: dict[str, Any]) -> _Rule:
    resource = rule["availableResource"]
    if not resource.startswith(_BUCKETS) or "/" in resource.removeprefix(_BUCKETS):
        raise BoundaryError(f"{resource!r} is not a bucket.")
    permissions: set[str] = set()
    for role in rule["availablePermissions"]:
        if not role.startswith("inRole:") or role.removeprefix("inRole:") not in ROLES:
            raise BoundaryError(f"{role!r} is not a role known here.")
        permissions |= ROLES[role.removeprefix("inRole:")]
    condition = rule.get("availabilityCondition")
    check = _condition(condition["expression"]) if condition else _always
    return _Rule(resource.removeprefix(_BUCKETS), frozenset(permissions), check)


def _always(_: Asked) -> bool:
    return True


def _condition(expression: str) -> Callable[[Asked], bool]:
    environment = celpy.Environment()
    try:
        tree = environment.compile(expression)
    except CELParseError as error:
        raise BoundaryError(f"The condition does not parse: {error}.") from error
    called = {
        str(node.children[1 if node.data == "member_dot_arg" else 0])
        for node in tree.iter_subtrees()
        if isinstance(node, lark.Tree) and node.data in ("member_dot_arg", "ident_arg")
    }
    if called - _FUNCTIONS:
        raise BoundaryError(f"A condition cannot call {', '.join(sorted(called - _FUNCTIONS))}.")

    def evaluate(asked: Asked) -> bool:
        def attribute(_: Any, name: Any, otherwise: Any) -> Any:
            # Only a list carries the attribute; everything else gets what the expression says.
            carries = name == _LIST_PREFIX and asked.permission == "storage.objects.list"
            return celtypes.StringType(asked.list_prefix) if carries else otherwise

        program = environment.program(tree, functions={"getAttribute": attribute})
        names = {
            "name": asked.resource,
            "type": "storage.googleapis.com",
            "service": "storage.googleapis.com",
        }
        try:
            context = {"resource": json_to_cel(names), "api": celtypes.MapType()}
            return bool(program.evaluate(context))
        except CELEvalError:
            return False

    return evaluate
