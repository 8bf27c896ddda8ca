"""Trees in LightGBM's text format, written anew before LightGBM reads them: its parser trusts what a file says.

What a file says is parsed here, by a narrower grammar than LightGBM's, and checked. LightGBM then gets text made of the parsed
values, in one form and nothing else, so that the two cannot read the same file differently.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from belated.typing import Ints

_WHOLE = re.compile(r"-?[0-9]{1,10}")
_NUMBER = re.compile(r"-?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:e[+-]?[0-9]{1,3})?")
_SPLITS = {
    "split_feature": int,
    "split_gain": float,
    "threshold": float,
    "decision_type": int,
    "left_child": int,
    "right_child": int,
    "internal_value": float,
    "internal_weight": float,
    "internal_count": int,
}
_LEAVES = {"leaf_value": float, "leaf_weight": float, "leaf_count": int}
_CATEGORIES = {"cat_boundaries": int, "cat_threshold": int}
_SINGLE = {"num_leaves": int, "num_cat": int, "is_linear": int, "shrinkage": float}
_ORDER = ("num_leaves", "num_cat", *(n for n in _SPLITS if "internal" not in n), *_LEAVES,
          *(n for n in _SPLITS if "internal" in n), *_CATEGORIES, "is_linear", "shrinkage")  # fmt: skip
_LARGEST = 1e100  # of a leaf: sums of such stay finite
_DEEPEST = 1000  # splits above a leaf: LightGBM's SHAP values go down by recursion


def rewritten(text: str, width: int) -> str:
    """The trees in ``text``, over ``width`` columns and of one margin; refuses what is not a list of sound trees."""
    if not isinstance(text, str):
        raise ValueError("its trees are no text")
    begin, end = text.find("\nTree=0\n"), text.find("\nend of trees\n")
    trees: list[str] = []
    if begin >= 0:
        parts = re.split(r"\nTree=([0-9]{1,9})\n", text[begin : max(end, 0)])
        if parts[0] or [int(k) for k in parts[1::2]] != list(range(len(parts) // 2)):
            raise ValueError("its trees are not in order")
        trees = [_tree(_parsed(part, k), width, k) for k, part in enumerate(parts[2::2])]
    if end < 0 or "\nTree=" in text[end:]:
        raise ValueError("its trees have no end")
    head = [
        "tree",
        "version=v4",
        "num_class=1",
        "num_tree_per_iteration=1",
        "label_index=0",
        f"max_feature_idx={width - 1}",
        f"feature_names={' '.join(f'Column_{k}' for k in range(width))}",
        f"feature_infos={' '.join(['none'] * width)}",
        f"tree_sizes={' '.join(str(len(tree)) for tree in trees)}",
    ]
    return "\n".join(head) + "\n\n" + "".join(trees) + "end of trees\n\npandas_categorical:null\n"


def _parsed(text: str, k: int) -> dict[str, list[int] | list[float]]:
    """The values of each line; a line that is not of a tree, or stands there twice, is refused."""
    kinds = {**_SINGLE, **_SPLITS, **_LEAVES, **_CATEGORIES}
    found: dict[str, list[int] | list[float]] = {}
    for line in text.split("\n"):
        if not line:
            continue
        name, equals, values = line.partition("=")
        if not equals or name not in kinds or name in found:
            raise ValueError(f"tree {k} has a line that is none of a tree's: {line[:40]!r}")
        whole = kinds[name] is int
        words = values.split(" ") if values else []
        if not all((_WHOLE if whole else _NUMBER).fullmatch(word) for word in words):
            raise ValueError(f"tree {k}: {name} holds something that is no number")
        found[name] = [int(word) for word in words] if whole else [float(word) for word in words]
    return found


def _tree(fields: dict[str, list[int] | list[float]], width: int, k: int) -> str:
    """One tree, checked and written."""
    if any(len(fields.get(name, [])) != 1 for name in _SINGLE):
        raise ValueError(f"tree {k} does not say how large it is")
    leaves, cats = int(fields["num_leaves"][0]), int(fields["num_cat"][0])
    nodes = leaves - 1
    if leaves < 1 or cats < 0 or fields["is_linear"][0] != 0:
        raise ValueError(f"tree {k} is of a kind that is not written here")
    sizes = {**dict.fromkeys(_LEAVES, leaves), **dict.fromkeys(_SPLITS, nodes)}
    for name, size in sizes.items():
        values = np.array(fields.get(name, []), dtype=np.float64)
        if len(values) != size or not np.isfinite(values).all():
            raise ValueError(f"tree {k} does not have {size} values of {name}")
    if np.abs(fields["leaf_value"]).max() > _LARGEST:
        raise ValueError(f"tree {k} has a leaf that is too large")
    if nodes:
        _check_splits(fields, width, leaves, cats, k)
    if not cats:
        fields = {name: values for name, values in fields.items() if name not in _CATEGORIES}
    lines = [f"{name}={' '.join(repr(value) for value in fields[name])}" for name in _ORDER if name in fields]
    return f"Tree={k}\n" + "\n".join(lines) + "\n\n\n"


def _check_splits(fields: dict[str, list[int] | list[float]], width: int, leaves: int, cats: int, k: int) -> None:
    nodes = leaves - 1
    feature, kind = np.array(fields["split_feature"]), np.array(fields["decision_type"])
    left, right = np.array(fields["left_child"]), np.array(fields["right_child"])
    children = np.concatenate([left, right])
    # Every node but the root, and every leaf, is the child of one split, and a split comes before its children.
    each_once = sorted(children.tolist()) == [*range(-leaves, 0), *range(1, nodes)]
    later = ((left < 0) | (left > np.arange(nodes))) & ((right < 0) | (right > np.arange(nodes)))
    sound = each_once and later.all() and (feature >= 0).all() and (feature < width).all()
    if not sound or _depth(left, right) > _DEEPEST:
        raise ValueError(f"tree {k} has a split that leads nowhere")
    if (kind < 0).any() or (kind > 15).any():
        raise ValueError(f"tree {k} has a split of an unknown kind")
    place = np.array(fields["threshold"])[kind & 1 == 1]
    if not (np.isin(place, np.arange(cats)).all() and (not cats or _holds_categories(fields, cats))):
        raise ValueError(f"tree {k} has a split by categories that it does not have")


def _depth(left: Ints, right: Ints) -> int:
    depth = np.ones(len(left), dtype=np.int64)
    for node in range(len(left)):
        for child in (left[node], right[node]):
            if child > 0:
                depth[child] = depth[node] + 1
    return int(depth.max())


def _holds_categories(fields: dict[str, list[int] | list[float]], cats: int) -> bool:
    edges: Sequence[float] = fields.get("cat_boundaries", [])
    words = fields.get("cat_threshold", [])
    rising = len(edges) == cats + 1 and edges[0] == 0 and bool((np.diff(edges) > 0).all()) and edges[-1] == len(words)
    return rising and all(0 <= word < 2**32 for word in words)
