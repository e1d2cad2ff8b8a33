"""Filters as SQL text, in Spark's dialect.

sqlglot makes the syntax tree; this module turns the part of it that filters may use into our own nodes and
refuses the rest by name.
"""

from __future__ import annotations

import logging
import math
from decimal import Decimal
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from lakepass.reader.errors import FilterError
from lakepass.reader.expressions import building
from lakepass.reader.expressions.names import resolve
from lakepass.reader.expressions.tree import Answer, Literal, Not, Or, Predicate, Value
from lakepass.reader.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DecimalType,
    DeltaType,
    StructType,
)

_COMPARISONS: dict[type, str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "<=>", exp.NullSafeNEQ: "<!>",
}  # fmt: skip
_TYPES: dict[str, DeltaType] = {
    "TINYINT": BYTE, "SMALLINT": SHORT, "INT": INTEGER, "BIGINT": LONG, "FLOAT": FLOAT, "DOUBLE": DOUBLE,
    "BOOLEAN": BOOLEAN, "TEXT": STRING, "VARCHAR": STRING, "CHAR": STRING, "BINARY": BINARY,
    "VARBINARY": BINARY, "DATE": DATE, "TIMESTAMPTZ": TIMESTAMP, "TIMESTAMPLTZ": TIMESTAMP,
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMPNTZ": TIMESTAMP_NTZ,
}  # fmt: skip
_ARGUMENTS: dict[type, set[str]] = {
    exp.Between: {"low", "high"}, exp.In: {"expressions"}, exp.Like: {"negate"}, exp.ILike: {"negate"},
    exp.Cast: {"to", "safe"}, exp.TryCast: {"to", "safe"}, exp.Column: {"table", "db", "catalog"},
    exp.Concat: {"expressions", "safe", "coalesce"}, exp.Literal: {"is_string"},
    exp.Anonymous: {"expressions"},
}  # fmt: skip
"""What nodes may say beside their operands. Anything else would change what they mean, unnoticed."""
_KNOWN = "=, <>, <, <=, >, >=, <=>, in, between, like, is null, and, or, not, casts and constants"


class _Dialect(Spark):
    """Spark 4: two quotes inside of a text are one quote."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES = ["'", '"', "\\"]  # noqa: RUF012 - sqlglot's own convention


def parse_sql(text: str, table: StructType) -> Predicate:
    """The filter that `text` says about rows of `table`.

    >>> from lakepass.reader.types import StructField
    >>> parse_sql("id > 3", StructType((StructField("id", LONG),))).operator
    '>'
    """
    log = logging.getLogger("sqlglot")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        parsed = sqlglot.parse_one(text, dialect=_Dialect)
    except (SqlglotError, RecursionError) as error:
        first = str(error).splitlines()[0][:200] if str(error) else "nested too deeply"
        raise FilterError(f"The filter {text[:200]!r} is not SQL that can be read: {first}") from None
    finally:
        log.setLevel(level)
    try:
        return building.condition(_Builder(table).node(parsed))
    except RecursionError:
        raise FilterError("The filter is nested too deeply.") from None


class _Builder:
    def __init__(self, table: StructType) -> None:
        self.table = table

    def node(self, tree: Any) -> Predicate | Value:
        said = {name for name, argument in tree.args.items() if argument}
        if said - {"this", "expression"} - _ARGUMENTS.get(type(tree), set()):
            raise _unknown(tree)
        operator = _COMPARISONS.get(type(tree))
        if operator is not None:
            return building.compare(operator, self.value(tree.this), self.value(tree.expression))
        match tree:
            case exp.Paren():
                return self.node(tree.this)
            case exp.And():
                return building.all_of([self.condition(tree.this), self.condition(tree.expression)])
            case exp.Or():
                return Or(self.condition(tree.this), self.condition(tree.expression))
            case exp.Not():
                return Not(self.condition(tree.this))
            case exp.Is():
                return self.is_(tree)
            case exp.In() if tree.expressions and not tree.args.get("query"):
                return building.is_in(
                    self.value(tree.this), [self.constant(each) for each in tree.expressions]
                )
            case exp.Between():
                child = self.value(tree.this)
                low, high = self.value(tree.args["low"]), self.value(tree.args["high"])
                return building.all_of(
                    [building.compare(">=", child, low), building.compare("<=", child, high)]
                )
            case exp.Escape() if isinstance(tree.this, exp.Like | exp.ILike):
                return self.like(tree.this, str(tree.expression.this))
            case exp.Like() | exp.ILike():
                return self.like(tree, "\\")
            case exp.Anonymous() if (
                str(tree.this).lower() in ("isnull", "isnotnull") and len(tree.expressions) == 1
            ):
                found = building.is_null(self.value(tree.expressions[0]))
                return found if str(tree.this).lower() == "isnull" else Not(found)
            case _:
                return self.leaf(tree)

    def leaf(self, tree: Any) -> Value:
        match tree:
            case exp.Column() | exp.Dot():
                return resolve(tuple(_parts(tree)), self.table)
            case exp.Cast() if not tree.args.get("safe"):
                return building.to_type(self.value(tree.this), _type(tree.args["to"]))
            case exp.Neg():
                return self.negative(tree.this)
            case exp.Literal():
                return building.literal(tree.this, STRING) if tree.is_string else _number(str(tree.this))
            case exp.Concat() if all(isinstance(each, exp.Literal) for each in tree.expressions):
                return building.literal("".join(each.this for each in tree.expressions), STRING)
            case exp.RawString():
                return building.literal(str(tree.this), STRING)
            case exp.Boolean():
                return building.literal(bool(tree.this), BOOLEAN)
            case exp.Null():
                return building.NULL
            case exp.HexString():
                return building.literal(_bytes(str(tree.this)), BINARY)
            case _:
                raise _unknown(tree)

    def value(self, tree: Any) -> Value:
        found = self.node(tree)
        if isinstance(found, Value):
            return found
        if isinstance(tree, exp.Paren):
            return Answer(found)
        # `a = b in (1)` is read in one way by Spark and in another by sqlglot.
        raise FilterError(
            f"{tree.sql(dialect='spark')[:100]!r} is a condition used as a value; put it in parentheses."
        )

    def condition(self, tree: Any) -> Predicate:
        return building.condition(self.node(tree))

    def constant(self, tree: Any) -> Literal:
        found = self.value(tree)
        if isinstance(found, Literal):
            return found
        raise FilterError(f"IN takes constants, and {tree.sql(dialect='spark')[:100]!r} is not one.")

    def is_(self, tree: Any) -> Predicate:
        if isinstance(tree.expression, exp.Null):
            return building.is_null(self.value(tree.this))
        if isinstance(tree.expression, exp.Boolean):
            truth = building.literal(bool(tree.expression.this), BOOLEAN)
            return building.compare("<=>", self.value(tree.this), truth)
        raise _unknown(tree)

    def like(self, tree: Any, escape: str) -> Predicate:
        fold = isinstance(tree, exp.ILike)
        found = building.like(self.value(tree.this), self.value(tree.expression), escape, fold=fold)
        return Not(found) if tree.args.get("negate") else found

    def negative(self, tree: Any) -> Value:
        if isinstance(tree, exp.Literal) and not tree.is_string:
            return _number(f"-{tree.this}")
        if isinstance(tree, exp.Cast) and isinstance(tree.this, exp.Literal):
            # A suffix such as 5L or 1.5BD arrives as a cast of the digits.
            return building.to_type(_number(f"-{tree.this.this}"), _type(tree.args["to"]))
        raise FilterError("A minus sign can only stand before a number in a filter.")


def _unknown(tree: Any) -> FilterError:
    return FilterError(
        f"A filter cannot use {tree.sql(dialect='spark')[:100]!r}; it knows {_KNOWN}. Read without that part "
        "and apply it to the rows."
    )


def _parts(tree: Any) -> list[str]:
    if isinstance(tree, exp.Dot):
        return [*_parts(tree.this), *_parts(tree.expression)]
    if isinstance(tree, exp.Column):
        if isinstance(tree.this, exp.Star):
            raise FilterError("A filter cannot use '*'.")
        return [part.name for part in tree.parts]
    if isinstance(tree, exp.Identifier):
        return [tree.name]
    raise FilterError(f"{tree.sql(dialect='spark')[:100]!r} is not a column.")


def _number(text: str) -> Literal:
    """Digits as Spark reads them: int, long or decimal without an exponent, double with one."""
    try:
        if "e" in text.lower():
            number = float(text)
            if math.isinf(number):
                raise FilterError(f"{text[:60]!r} is too large for a double.")
            return building.literal(number, DOUBLE)
        if "." not in text:
            whole = int(text)
            for delta, bits in ((INTEGER, 31), (LONG, 63)):
                if -(1 << bits) <= whole < 1 << bits:
                    return building.literal(whole, delta)
        exact = Decimal(text)
    except (ValueError, ArithmeticError):
        raise FilterError(f"{text[:60]!r} is not a number.") from None
    scale = max(-int(exact.as_tuple().exponent), 0)
    precision = max(len(exact.as_tuple().digits), scale)
    if precision > 38:
        raise FilterError(f"{text[:60]!r} has more than 38 digits.")
    return building.literal(exact, DecimalType(max(precision, 1), scale))


def _bytes(digits: str) -> bytes:
    try:
        return bytes.fromhex(digits if len(digits) % 2 == 0 else f"0{digits}")
    except ValueError:
        raise FilterError(f"X'{digits[:40]}' is not made of hexadecimal digits.") from None


def _type(tree: Any) -> DeltaType:
    name = tree.this.value if hasattr(tree.this, "value") else str(tree.this)
    if name == "DECIMAL":
        numbers = [int(each.this.name) for each in tree.expressions]
        precision, scale = [*numbers, 10, 0][:2] if len(numbers) != 1 else (numbers[0], 0)
        if not 1 <= precision <= 38 or not 0 <= scale <= precision:
            raise FilterError(f"decimal({precision},{scale}) is not a type.")
        return DecimalType(precision, scale)
    found = _TYPES.get(name)
    if found is None:
        raise FilterError(f"A filter cannot cast to {tree.sql(dialect='spark')[:60]!r}.")
    return found
