"""Which parameters of LightGBM may be passed on as they are: those that change how trees grow, and nothing that we rely on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PASSED_ON = (
    "max_depth",
    "min_sum_hessian_in_leaf",
    "min_gain_to_split",
    "lambda_l1",
    "lambda_l2",
    "path_smooth",
    "extra_trees",
    "extra_seed",
    "feature_fraction_bynode",
    "feature_fraction_seed",
    "bagging_freq",
    "bagging_seed",
    "interaction_constraints",
    "monotone_constraints_method",
    "monotone_penalty",
    "max_bin",
    "max_bin_by_feature",
    "min_data_in_bin",
    "bin_construct_sample_cnt",
    "data_random_seed",
    "use_missing",
    "zero_as_missing",
    "min_data_per_group",
    "max_cat_threshold",
    "max_cat_to_onehot",
    "cat_l2",
    "cat_smooth",
    "histogram_pool_size",
)
_OWN = {
    "learning_rate": ("shrinkage_rate", "eta"),
    "num_leaves": ("num_leaf", "max_leaves", "max_leaf", "max_leaf_nodes"),
    "min_data_in_leaf": ("min_data_per_leaf", "min_data", "min_child_samples", "min_samples_leaf"),
    "feature_fraction": ("sub_feature", "colsample_bytree"),
    "bagging_fraction": ("sub_row", "subsample", "bagging"),
    "monotone": ("monotone_constraints", "mc", "monotone_constraint", "monotonic_cst"),
    "rounds": ("num_iterations", "num_boost_round", "n_estimators", "num_round", "num_rounds", "n_iter", "max_iter", "early_stopping_round"),
    "seed": ("random_seed", "random_state"),
    "threads": ("num_threads", "num_thread", "nthread", "nthreads", "n_jobs"),
}  # fmt: skip
_OWN_NAME = {other: name for name, others in _OWN.items() for other in (name, *others)}


def check_params(params: Any) -> None:
    """Refuse what LightGBM would ignore without a word, and what would change what is minimised.

    >>> check_params({"lambda_l2": 1.0})
    >>> check_params({"eta": 0.1})
    Traceback (most recent call last):
        ...
    ValueError: params has 'eta', which is a parameter of BoostingModel itself: use BoostingModel(learning_rate=...).
    """
    if params is None:
        return
    if not isinstance(params, Mapping):
        raise ValueError(f"params={params!r} must be a mapping of names to values, as in params={{'lambda_l2': 1.0}}.")
    for name in params:
        if name in _OWN_NAME:
            raise ValueError(
                f"params has {name!r}, which is a parameter of BoostingModel itself: use BoostingModel({_OWN_NAME[name]}=...)."
            )
        if name not in PASSED_ON:
            raise ValueError(
                f"params has {name!r}, which is not passed on to LightGBM: it is not known, or would change what is minimised or how "
                f"trees are stored. Those that are: {', '.join(PASSED_ON)}."
            )
