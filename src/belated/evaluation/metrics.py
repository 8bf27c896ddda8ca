"""How good predicted probabilities are, against final labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from belated.typing import Bools, Floats

_LEAST = 1e-15


def log_losses(y: Bools, p: Floats) -> Floats:
    """-log of the probability given to what happened, row by row; probabilities of 0 and 1 count as 1e-15 from there.

    >>> log_losses(np.array([True, False]), np.array([0.5, 0.2])).round(3).tolist()
    [0.693, 0.223]
    """
    return -np.log(np.clip(np.where(y, p, 1.0 - p), _LEAST, 1.0))


def scores(y: Bools, p: Floats) -> dict[str, float | None]:
    """Log loss, areas under the precision-recall and ROC curves, calibration ratio and expected calibration error.

    Where there are no positives, or nothing else, the areas mean nothing and are None; so is a ratio to 0.
    """
    both = bool(y.any() and not y.all())
    return {
        "log_loss": float(log_losses(y, p).mean()),
        "pr_auc": float(average_precision_score(y, p)) if both else None,
        "roc_auc": float(roc_auc_score(y, p)) if both else None,
        "calibration_ratio": float(p.mean() / y.mean()) if y.any() else None,
        "ece": expected_calibration_error(y, p),
    }


def calibration_curve(y: Bools, p: Floats, bins: int = 10) -> list[dict[str, float]]:
    """Mean prediction and rate of positives in bins of about equal numbers of rows, by prediction.

    The rate has a 95% interval (Wilson's).
    """
    order = np.argsort(p, kind="stable")
    # Rows with equal predictions may fall into two bins. Each row counts their mean, so the order of rows does not matter.
    _, tie = np.unique(p, return_inverse=True)
    mean = (np.bincount(tie, y) / np.bincount(tie))[tie]
    curve = []
    for rows in np.array_split(order, min(bins, len(p))):
        n, rate = len(rows), float(mean[rows].mean())
        centre, half = _wilson(rate, n)
        curve.append(
            {
                "rows": n,
                "predicted": float(p[rows].mean()),
                "rate": rate,
                "low": max(centre - half, 0.0),
                "high": min(centre + half, 1.0),
            }
        )
    return curve


def expected_calibration_error(y: Bools, p: Floats, bins: int = 10) -> float:
    """Mean distance of the prediction from the rate, over the bins of :func:`calibration_curve`."""
    curve = calibration_curve(y, p, bins)
    return float(sum(b["rows"] * abs(b["predicted"] - b["rate"]) for b in curve) / len(y))


def _wilson(rate: float, n: int, z: float = 1.96) -> tuple[float, float]:
    centre = (rate + z**2 / (2 * n)) / (1 + z**2 / n)
    return centre, z / (1 + z**2 / n) * float(np.sqrt(rate * (1 - rate) / n + z**2 / (4 * n**2)))


def calibration_by(groups: NDArray[Any], y: Bools, p: Floats) -> list[dict[str, Any]]:
    """Rows, rate, mean prediction and their ratio in each group, in the groups' order."""
    names, code = np.unique(groups, return_inverse=True)
    rows, positives, predicted = (np.bincount(code, weights, len(names)) for weights in (None, y, p))
    return [
        {
            "group": name.item() if isinstance(name, np.generic) else name,
            "rows": int(n),
            "rate": float(k / n),
            "predicted": float(s / n),
            "calibration_ratio": float(s / k) if k else None,
        }
        for name, n, k, s in zip(names, rows, positives, predicted, strict=True)
    ]


def gap_closed(loss: Any, bl: Any, oracle: Any) -> Any:
    """(BL - loss) / (BL - oracle): 0 as bad as BL, 1 as good as the oracle; NaN where there is no gap to close."""
    gap = np.asarray(bl - oracle, dtype=float)
    return np.where(gap > 0, (bl - loss) / np.where(gap > 0, gap, 1.0), np.nan)
