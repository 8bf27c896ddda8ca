"""Conditions on the columns of a table, as people write them: ``status == "won" and amount > 0``."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from belated.typing import Bools

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_QUOTED = re.compile(r"`([^`]+)`")


class Condition:
    """A condition, and the columns that it looks at. Nothing but comparisons is understood, so none can do harm.

    Columns are compared with values by ``== != < <= > >=``, ``in`` and ``not in``, and conditions are joined by ``and``, ``or``
    and ``not``. The name of a column that is no word stands in backticks. Where a value is missing no comparison
    holds, and neither does its opposite, but for ``is None``.

    >>> table = pa.table({"status": ["won", "lost", None], "amount due": [5, 7, 9]})
    >>> Condition('status == "won" or `amount due` > 8').holds(table).tolist()
    [True, False, True]
    """

    def __init__(self, text: str, option: str = "--outcome-where") -> None:
        self.text, self.option = text, option
        self._names: dict[str, str] = {}
        try:
            self._tree = ast.parse(_QUOTED.sub(self._stand_in, text).strip(), mode="eval").body
        except (SyntaxError, ValueError):
            single = re.search(r"(?<![=!<>])=(?!=)", text)
            raise self._refusal("to compare, write ==" if single else "it is no condition") from None
        self.columns: list[str] = []
        self._build(self._tree)
        if not self.columns:
            raise self._refusal("it looks at no column")

    def holds(self, table: pa.Table) -> Bools:
        """For each row, whether the condition holds."""
        absent = [name for name in self.columns if name not in table.column_names]
        if absent:
            raise ValueError(
                f"{self.option} {self.text}: there is no column {', '.join(map(repr, absent))}; the columns are "
                f"{', '.join(table.column_names)}."
            )
        marked = table.select(self.columns).append_column("row", pa.array(np.arange(table.num_rows)))
        try:
            kept = marked.rename_columns([*map(str, range(len(self.columns))), "row"]).filter(self._build(self._tree))
        except (pa.ArrowException, OverflowError) as error:
            kinds = ", ".join(f"{name} holds {table.schema.field(name).type}" for name in self.columns)
            raise ValueError(
                f"{self.option} {self.text}: cannot be compared ({str(error).splitlines()[0]}); {kinds}."
            ) from None
        found = np.zeros(table.num_rows, dtype=bool)
        found[np.asarray(kept["row"])] = True
        return found

    def _stand_in(self, match: re.Match[str]) -> str:
        word = f"quoted_column_{len(self._names)}"
        self._names[word] = match[1]
        return word

    def _refusal(self, why: str) -> ValueError:
        return ValueError(
            f'{self.option} {self.text}: {why}. Compare columns with values, as in status == "won" and amount > 0 or '
            f'kind in ("sale", "lead"); a column whose name is no word stands in backticks.'
        )

    def _build(self, node: ast.expr) -> Any:
        if isinstance(node, ast.BoolOp):
            parts = [self._build(part) for part in node.values]
            join = operator.and_ if isinstance(node.op, ast.And) else operator.or_
            whole = parts[0]
            for part in parts[1:]:
                whole = join(whole, part)
            return whole
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return ~self._build(node.operand)
        if isinstance(node, ast.Name):
            return self._column(node) == True  # noqa: E712 (a column of truth values)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._compare(node.left, node.ops[0], node.comparators[0])
        raise self._refusal("it is not made of comparisons")

    def _compare(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Any:
        if isinstance(op, ast.In | ast.NotIn):
            if not isinstance(right, ast.Tuple | ast.List | ast.Set):
                raise self._refusal("'in' wants values in brackets")
            values = [self._value(v) for v in right.elts]
            if len({isinstance(value, str) for value in values}) != 1:
                raise self._refusal("'in' wants texts or numbers, not both")
            inside = pc.is_in(self._side(left), value_set=pa.array(values))
            return inside if isinstance(op, ast.In) else ~inside & self._side(left).is_valid()
        if isinstance(op, ast.Is | ast.IsNot) and isinstance(right, ast.Constant) and right.value is None:
            return self._side(left).is_null() if isinstance(op, ast.Is) else self._side(left).is_valid()
        if type(op) not in _COMPARE:
            raise self._refusal("it compares in a way that is not known")
        return _COMPARE[type(op)](self._side(left), self._side(right))

    def _side(self, node: ast.expr) -> Any:
        return self._column(node) if isinstance(node, ast.Name) else pc.scalar(self._value(node))

    def _column(self, node: ast.Name) -> Any:
        name = self._names.get(node.id, node.id)
        if name not in self.columns:
            self.columns.append(name)
        return pc.field(str(self.columns.index(name)))

    def _value(self, node: ast.expr) -> Any:
        try:
            value = ast.literal_eval(node)
        except ValueError:
            raise self._refusal("it compares with something that is no text, number or truth value") from None
        if not isinstance(value, str | int | float | bool):
            raise self._refusal("it compares with something that is no text, number or truth value")
        return float(value) if isinstance(value, int) and abs(value) >= 2**63 else value
