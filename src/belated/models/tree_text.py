"""Trees in LightGBM's text format, checked before LightGBM reads them: its parser trusts what a file says."""

from __future__ import annotations

import numpy as np

from belated.typing import Floats


def check_trees(text: str, width: int) -> None:
    """Refuse text that is not a list of sound trees over ``width`` columns, one margin each."""
    head, _, rest = text.partition("\n\n")
    fields = _fields(head)
    wanted = {"num_class": "1", "num_tree_per_iteration": "1", "max_feature_idx": str(width - 1)}
    for name, value in wanted.items():
        if fields.get(name) != value:
            raise ValueError(f"its trees say {name}={fields.get(name)!r} where {value} is meant")
    # Sizes are in bytes, and the parser jumps by them.
    data, at = rest.encode().lstrip(b"\n"), 0
    for k, size in enumerate(_numbers(fields.get("tree_sizes", "")).astype(np.int64)):
        tree = data[at : at + size]
        if size <= 0 or not tree.startswith(b"Tree=%d\n" % k):
            raise ValueError(f"tree {k} is not where it should be")
        _check_tree(_fields(tree.decode()), width, k)
        at += size
    if not data[at:].startswith(b"end of trees"):
        raise ValueError("there is more than its trees")


def _check_tree(fields: dict[str, str], width: int, k: int) -> None:
    leaves, cats = int(fields["num_leaves"]), int(fields["num_cat"])
    nodes = leaves - 1
    if leaves < 1 or cats < 0 or fields.get("is_linear", "0") != "0":
        raise ValueError(f"tree {k} is of a kind that is not written here")
    if len(_numbers(fields["leaf_value"])) != leaves:
        raise ValueError(f"tree {k} does not have {leaves} leaves")
    if not nodes:
        return
    names = ("split_feature", "threshold", "decision_type", "left_child", "right_child", "split_gain")
    columns = {name: _numbers(fields[name]) for name in names}
    if any(len(values) != nodes for values in columns.values()):
        raise ValueError(f"tree {k} does not have {nodes} splits")
    inside = (columns["split_feature"] >= 0) & (columns["split_feature"] < width)
    for side in ("left_child", "right_child"):
        child = columns[side]
        # Nodes are numbered from the root on, so a child that comes later cannot lead back.
        inside &= np.where(child >= 0, (child > np.arange(nodes)) & (child < nodes), -child - 1 < leaves)
    if cats:
        edges, words = _numbers(fields["cat_boundaries"]), _numbers(fields["cat_threshold"])
        sound = len(edges) == cats + 1 and edges[0] == 0 and (np.diff(edges) > 0).all() and edges[-1] == len(words)
        inside &= sound
    by_category = columns["decision_type"].astype(np.int64) & 1 == 1
    inside &= ~by_category | ((columns["threshold"] >= 0) & (columns["threshold"] < cats))
    if not inside.all():
        raise ValueError(f"tree {k} has a split that leads nowhere")


def _fields(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def _numbers(text: str) -> Floats:
    return np.array(text.split(), dtype=np.float64)
