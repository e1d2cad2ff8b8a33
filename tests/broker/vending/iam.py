"""An evaluator of IAM's documented rules, enough of them to judge a session policy.

Our reading of the IAM User Guide: "Policy evaluation logic" (what is not allowed is denied), "Resource" and
"Condition operators" (`*` is any run of characters, `?` any one; matching regards case; a condition on a
key that the request lacks is false), "Variables" (`${*}`, `${?}`, `${$}` are the characters themselves, in
version 2012-10-17 only).
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Mapping
from typing import Any


def allows(policy: str, action: str, resource: str, context: Mapping[str, str] | None = None) -> bool:
    """Whether `policy` allows `action` on `resource` for a request with these condition keys."""
    document = json.loads(policy)
    variables = document.get("Version") == "2012-10-17"
    allowed = False
    for statement in document["Statement"]:
        if not any(
            _matches(pattern, action, variables, case=False) for pattern in _many(statement["Action"])
        ):
            continue
        if not any(_matches(pattern, resource, variables) for pattern in _many(statement["Resource"])):
            continue
        if not _conditions_hold(statement.get("Condition", {}), context or {}, variables):
            continue
        if statement["Effect"] == "Deny":
            return False
        allowed = True
    return allowed


def can_read(policy: str, bucket: str, key: str, *, partition: str = "aws", **context: str) -> bool:
    """Whether GetObject on a key is allowed."""
    return allows(policy, "s3:GetObject", f"arn:{partition}:s3:::{bucket}/{key}", context)


def can_list(policy: str, bucket: str, prefix: str | None, *, partition: str = "aws") -> bool:
    """Whether ListObjects with a prefix (None: without one) is allowed."""
    context = {} if prefix is None else {"s3:prefix": prefix}
    return allows(policy, "s3:ListBucket", f"arn:{partition}:s3:::{bucket}", context)


def _conditions_hold(conditions: Mapping[str, Any], context: Mapping[str, str], variables: bool) -> bool:
    for operator, keys in conditions.items():
        for key, wanted in keys.items():
            if key not in context:
                return False
            test = _OPERATORS[operator]
            if not any(test(pattern, context[key], variables) for pattern in _many(wanted)):
                return False
    return True


def _many(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def _matches(pattern: str, text: str, variables: bool, *, case: bool = True) -> bool:
    expression, position = "", 0
    while position < len(pattern):
        if variables and (found := re.match(r"\$\{([*?$])\}", pattern[position:])):
            expression += re.escape(found[1])
            position += found.end()
            continue
        if variables and re.match(r"\$\{", pattern[position:]):
            raise AssertionError(f"a policy variable is left in {pattern!r}")
        character = pattern[position]
        expression += {"*": ".*", "?": "."}.get(character, re.escape(character))
        position += 1
    return re.fullmatch(expression, text, re.DOTALL | (0 if case else re.IGNORECASE)) is not None


def _in_network(pattern: str, text: str, _variables: bool) -> bool:
    return ipaddress.ip_address(text) in ipaddress.ip_network(pattern)


_OPERATORS: dict[str, Callable[[str, str, bool], bool]] = {
    "StringLike": lambda pattern, text, variables: _matches(pattern, text, variables),
    "StringEquals": lambda pattern, text, _variables: pattern == text,
    "IpAddress": _in_network,
}
