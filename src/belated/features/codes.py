"""CodeEncoder: each column of a table as one column of numbers, as trees want them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, _check_sample_weight, check_is_fitted

from belated.features.column_encodings import is_category, read_categories, read_feature, read_numbers
from belated.features.field_matrix import FieldMatrix
from belated.tables.frames import open_table, require
from belated.tables.missing import EMPTY_TEXT, missing_words, words_of
from belated.typing import Bools, Floats


class CodeEncoder(TransformerMixin, BaseEstimator):
    """Numbers as they are, and categories by their place in the order of frequency: 0 for the most frequent.

    That order means something to trees: the rare values of a column are often alike. A missing category is one like any other.
    A value that was not seen in training is -1, beside the most frequent one, and is treated as that is unless a split parts
    them. Missing numbers are NaN. Of a :class:`~belated.FieldMatrix`, every field is a column of categories.

    Parameters
    ----------
    na : sequence of str
        Words that mean a missing value where they are text, beside empty text.

    Attributes
    ----------
    codes_ : dict of str to (values, places) or None
        The sorted values of a column of categories, and the place of each; after them that of a missing one. None for a column
        of numbers.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"device": ["phone", "desktop", "phone", None], "price": [1.0, 2.0, None, 4.0]})
    >>> encoder = CodeEncoder().fit(table)
    >>> encoder.transform(table).tolist()
    [[0.0, 1.0], [1.0, 2.0], [0.0, nan], [2.0, 4.0]]
    >>> encoder.transform(pa.table({"device": ["watch"], "price": [3.0]})).tolist()
    [[-1.0, 3.0]]
    """

    def __init__(self, na: Sequence[str] = ()) -> None:
        self.na = na

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> CodeEncoder:
        """Learn the order of categories; ``y`` is not looked at, and weights count as repetitions."""
        rows = np.zeros(len(X) if isinstance(X, FieldMatrix) else len(open_table(X, "X")))
        weight = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
        return self.set_weights(weights_of_categories(X, weight, [*EMPTY_TEXT, *words_of(self.na)]))

    def set_weights(self, weights: dict[str, dict[Any, float] | None]) -> CodeEncoder:
        """Take the order of categories from the weight of each, by column, None being a missing one; None for a column of numbers."""
        self.feature_names_in_ = np.array(list(weights), dtype=object)
        self.n_features_in_ = len(weights)
        self.codes_ = {name: None if often is None else _places(often) for name, often in weights.items()}
        return self

    def transform(self, X: Any) -> Floats:
        """A matrix (n, columns)."""
        check_is_fitted(self, "codes_")
        if not isinstance(X, FieldMatrix):
            require(open_table(X, "X"), list(self.codes_), "X")
        columns = _columns(X, [*EMPTY_TEXT, *words_of(self.na)], self.codes_)
        out = np.empty((len(next(iter(columns.values()))), len(self.codes_)))
        for k, (name, codes) in enumerate(self.codes_.items()):
            out[:, k] = read_numbers(columns[name], name) if codes is None else _look_up(columns[name], name, codes)
        return out

    @property
    def categorical_(self) -> Bools:
        """Which columns hold categories."""
        return np.array([codes is not None for codes in self.codes_.values()])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names of the columns, which are those of the table."""
        check_is_fitted(self, "codes_")
        return np.asarray(_check_feature_names_in(self, input_features), dtype=object)


def _columns(X: Any, words: list[str], wanted: Any = None) -> dict[str, Any]:
    """The columns of a table as Arrow arrays, those of a FieldMatrix as whole numbers."""
    if isinstance(X, FieldMatrix):
        return {f"field {k}": X.indices[:, k] for k in range(X.n_fields)}
    frame = open_table(X, "X")
    return {name: missing_words(read_feature(frame, name), words) for name in wanted or frame.columns}


def _holds_categories(values: Any) -> bool:
    return isinstance(values, np.ndarray) or is_category(values)


def weights_of_categories(X: Any, weight: Floats, words: list[str]) -> dict[str, dict[Any, float] | None]:
    """Of each column of categories the weight of each value, None being a missing one; None of a column of numbers."""
    return {
        name: _weights(values, weight) if _holds_categories(values) else None
        for name, values in _columns(X, words).items()
    }


def _weights(values: Any, weight: Floats) -> dict[Any, float]:
    if isinstance(values, np.ndarray):
        seen, code = np.unique(values, return_inverse=True)
        return dict(zip(seen.tolist(), np.bincount(code, weight).tolist(), strict=True))
    coded = values.cast(pa.large_string()).dictionary_encode(null_encoding="encode")
    often = np.bincount(np.asarray(coded.indices), weight, len(coded.dictionary))
    return dict(zip(coded.dictionary.to_pylist(), often.tolist(), strict=True))


def _places(weights: dict[Any, float]) -> tuple[Any, Any]:
    """Sorted values, and places in the order of frequency; of equally frequent ones the first sorted comes first, a missing one last."""
    seen = sorted(value for value in weights if value is not None)
    often = np.array([weights[value] for value in seen] + [weights.get(None, 0.0)])
    places = np.empty(len(often), dtype=np.int64)
    places[np.argsort(-often, kind="stable")] = np.arange(len(often))
    return np.array(seen) if seen and not isinstance(seen[0], str) else seen, places


def _look_up(values: Any, name: str, codes: tuple[Any, Any]) -> Floats:
    seen, places = codes
    if isinstance(values, np.ndarray):
        at = np.minimum(np.searchsorted(seen, values), len(seen) - 1)
        return np.where(seen[at] == values, places[at], -1.0)
    text = read_categories(values, name)
    found = pc.index_in(text, value_set=pa.array(seen, pa.large_string()))
    at = np.where(np.asarray(text.is_null()), len(seen), np.asarray(found.fill_null(-1)))
    return np.where(at < 0, -1.0, places[at])
