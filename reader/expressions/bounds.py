"""Asks a filter of bounds: which answers are possible for the rows of a file or a row group.

The answer for each file is three flags: some row may be true, false, null. A file whose rows cannot be true
is skipped. Every rule errs on the side of "possible": bounds may be wide, cut off or missing, and a row must
never be lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakepass.reader.expressions.casts import cast_array
from lakepass.reader.expressions.tree import (
    And,
    Cast,
    Column,
    Comparison,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Predicate,
    Truth,
    Value,
)
from lakepass.reader.schema import widens
from lakepass.reader.types import BOOLEAN, DATE, FLOATING, STRING, TIMESTAMP, TIMESTAMP_NTZ, DeltaType

Flags = npt.NDArray[np.bool_]

_MANY = 100
"""Beyond so many constants in a list, only its smallest and largest are asked."""
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<=>": "<=>"}
_TIMES = (DATE, TIMESTAMP, TIMESTAMP_NTZ)


@dataclass(frozen=True)
class Bounds:
    """What is known of a column in each file: its bounds, and whether there are values and nulls."""

    low: Any
    high: Any
    has_value: Flags
    has_null: Flags
    exact: bool = False
    """Whether low and high are the values themselves, as for partition columns."""


@dataclass(frozen=True)
class Possible:
    """For each file, which answers its rows may give."""

    true: Flags
    false: Flags
    null: Flags


class BoundsEvaluator:
    """Evaluates a filter on the bounds of `count` files; `bounds` gives a column's, or None if unknown."""

    def __init__(self, count: int, bounds: Callable[[Column], Bounds | None]) -> None:
        self._count = count
        self._bounds = bounds

    def evaluate(self, node: Predicate) -> Possible:
        """The answers that are possible."""
        match node:
            case And(left, right):
                return _both(self.evaluate(left), self.evaluate(right))
            case Or(left, right):
                return _invert(_both(_invert(self.evaluate(left)), _invert(self.evaluate(right))))
            case Not(child):
                return _invert(self.evaluate(child))
            case Truth(value):
                truth = Literal(pa.scalar(True), BOOLEAN)
                return self._comparison("=", value, truth)
            case Comparison(operator, left, right):
                if isinstance(left, Literal):
                    left, right, operator = right, left, _FLIPPED[operator]
                return self._comparison(operator, left, right)
            case IsNull(child):
                bounds = self._of(child)
                if bounds is None:
                    return self._unknown(null=False)
                return Possible(bounds.has_null, bounds.has_value, self._none())
            case In(child, values, has_null):
                return self._in(child, values, has_null)
            case Like(child, prefix=prefix):
                return self._like(child, prefix)

    def _comparison(self, operator: str, left: Value, right: Value) -> Possible:
        if isinstance(left, Literal) and isinstance(right, Literal):
            return self._unknown()
        bounds = self._of(left)
        if bounds is None or not isinstance(right, Literal):
            return self._unknown(null=operator != "<=>")
        if not right.scalar.is_valid:
            if operator == "<=>":
                return Possible(bounds.has_null, bounds.has_value, self._none())
            return Possible(self._none(), self._none(), ~self._none())
        below, at_most, above, at_least = _beside(bounds, right.scalar, left.type)
        match operator:
            case "<":
                true, false = ~at_least, ~below
            case "<=":
                true, false = ~above, ~at_most
            case ">":
                true, false = ~at_most, ~above
            case ">=":
                true, false = ~below, ~at_least
            case _:
                true, false = ~(above | _surely_less(bounds, right.scalar)), ~(at_least & at_most)
        true, false = true & bounds.has_value, false & bounds.has_value
        if operator == "<=>":
            return Possible(true, false | bounds.has_null, self._none())
        return Possible(true, false, bounds.has_null)

    def _in(self, child: Value, values: Any, has_null: bool) -> Possible:
        bounds = self._of(child)
        if bounds is None:
            return self._unknown()
        if len(values) > _MANY:
            ordered = values.take(pc.array_sort_indices(values))
            values = [ordered[0], ordered[-1]]
            low, high = (Literal(each, child.type) for each in values)
            true = self._comparison(">=", child, low).true & self._comparison("<=", child, high).true
            if child.type in FLOATING:
                true = bounds.has_value
        else:
            answers = [self._comparison("=", child, Literal(each, child.type)).true for each in values]
            true = np.logical_or.reduce(answers)
        null = bounds.has_value | bounds.has_null if has_null else bounds.has_null
        false = self._none() if has_null else bounds.has_value
        if bounds.exact and not has_null:
            false = false & ~true
        return Possible(true, false, null)

    def _like(self, child: Value, prefix: str) -> Possible:
        bounds = self._of(child)
        if bounds is None:
            return self._unknown()
        true = bounds.has_value
        if prefix:
            start = pa.scalar(prefix, pa.string())
            begins = _known(pc.starts_with(bounds.low, pattern=prefix))
            above = _known(pc.greater(bounds.low, start)) & ~begins
            true = true & ~above & ~_surely_less(bounds, start)
        return Possible(true, bounds.has_value, bounds.has_null)

    def _of(self, node: Value) -> Bounds | None:
        match node:
            case Column():
                return self._bounds(node)
            case Cast(child, delta) if _keeps_order(child.type, delta):
                inner = self._of(child)
                if inner is None:
                    return None
                low = cast_array(inner.low, child.type, delta)
                high = cast_array(inner.high, child.type, delta)
                return Bounds(low, high, inner.has_value, inner.has_null, inner.exact)
            case _:
                return None

    def _none(self) -> Flags:
        return np.zeros(self._count, dtype=np.bool_)

    def _unknown(self, *, null: bool = True) -> Possible:
        return Possible(~self._none(), ~self._none(), ~self._none() if null else self._none())


def _both(left: Possible, right: Possible) -> Possible:
    null = (left.null & (right.true | right.null)) | (right.null & (left.true | left.null))
    return Possible(left.true & right.true, left.false | right.false, null)


def _invert(answer: Possible) -> Possible:
    return Possible(answer.false, answer.true, answer.null)


def _beside(bounds: Bounds, scalar: Any, delta: DeltaType) -> tuple[Flags, Flags, Flags, Flags]:
    """Surely: all values are below the scalar, at most it, above it, at least it."""
    if delta in FLOATING:
        if np.isnan(scalar.as_py()):
            nothing = np.zeros(len(bounds.low), dtype=np.bool_)
            return nothing, nothing, nothing, nothing
        above = _known(pc.greater(bounds.low, scalar))
        at_least = _known(pc.greater_equal(bounds.low, scalar))
        if not bounds.exact:
            # Writers leave NaN out of the bounds, and it is greater than any of them.
            nothing = np.zeros(len(bounds.low), dtype=np.bool_)
            return nothing, nothing, above, at_least
        nan = _known(pc.is_nan(bounds.high))
        below = _known(pc.less(bounds.high, scalar)) & ~nan
        return below, _known(pc.less_equal(bounds.high, scalar)) & ~nan, above | nan, at_least | nan
    above = _known(pc.greater(bounds.low, scalar))
    at_least = _known(pc.greater_equal(bounds.low, scalar))
    below = _surely_less(bounds, scalar)
    at_most = _known(pc.less_equal(bounds.high, scalar))
    if delta == STRING and not bounds.exact:
        # Values may go on behind a bound that was cut off.
        at_most = below
    return below, at_most, above, at_least


def _surely_less(bounds: Bounds, scalar: Any) -> Flags:
    """All values are less than the scalar. A cut-off text stands for everything that begins with it."""
    less = _known(pc.less(bounds.high, scalar))
    if bounds.exact or not (pa.types.is_string(scalar.type) or pa.types.is_binary(scalar.type)):
        return less
    whole = scalar.as_py()
    prefixes = pa.array([whole[:end] for end in range(len(whole) + 1)], scalar.type)
    return less & ~_known(pc.is_in(bounds.high, value_set=prefixes))


def _known(answer: Any) -> Flags:
    flags: Flags = pc.fill_null(answer, False).to_numpy(zero_copy_only=False)
    return flags


def _keeps_order(old: DeltaType, new: DeltaType) -> bool:
    return widens(old, new) or (old in _TIMES and new in _TIMES and new != DATE)
