"""The result of a query, through DuckDB, which reads its own files, Parquet, CSV, SQLite, Postgres and S3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from belated.extras import needs
from belated.tables.files import first_line
from belated.tables.missing import mark_missing
from belated.tables.sources import Source, one_kind_of_text


@dataclass(frozen=True)
class SqlSource(Source):
    """A query, to a database or without one: then it names files itself."""

    query: str
    db: str | None = None
    na: tuple[str, ...] = ()

    @property
    def name(self) -> str:  # type: ignore[override]
        return "the query" if self.db is None else f"the query of {Path(self.db).name}"

    @cached_property
    def _opened(self) -> tuple[Any, Any]:
        """The connection, which a relation does not keep open in every version of DuckDB, and the relation."""
        with needs("sql"):
            import duckdb
        try:
            connection = duckdb.connect(*self._place)
            connection.execute("SET python_enable_replacements = false")  # a table's name is never a variable of ours
            relation = connection.sql(self.query)
        except duckdb.Error as error:
            raise ValueError(f"{self.name}: {first_line(error)}.") from None
        if relation is None:
            raise ValueError(f"{self.name}: gives no table. Begin it with SELECT or FROM.")
        return connection, relation

    @property
    def _relation(self) -> Any:
        return self._opened[1]

    @property
    def _place(self) -> tuple[Any, ...]:
        """Where to connect to; a file of data is only read."""
        if self.db is None:
            return (":memory:",)
        if Path(self.db).exists():
            return (self.db, True)
        if ":" in self.db:
            return (self.db,)
        raise ValueError(f"--db {self.db}: there is no such file.")

    @property
    def columns(self) -> list[str]:
        return list(self._relation.columns)

    def read(self, columns: Sequence[str] | None = None, kinds: Mapping[str, str] | None = None) -> pa.Table:
        import duckdb

        names = self.columns if columns is None else list(columns)
        try:
            table = pa.table(self._relation.select(*(duckdb.ColumnExpression(name) for name in names)))
        except duckdb.Error as error:
            raise ValueError(f"{self.name}: {first_line(error)}.") from None
        if table.num_rows == 0:
            raise ValueError(f"{self.name}: gives columns but no rows.")
        return one_kind_of_text(mark_missing(table, self.na))
