"""Draws docs/pictures/nndf.png: what a flexible network does to ConvDF's negative part, and what NnDF does about it. Simulated data."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from belated import ConvDF, NetworkModel, NnDF
from belated.data.labels import check_labels
from belated.evaluation.metrics import log_losses

EPOCHS = list(range(1, 101))
FREE = {
    "width": 64,
    "depth": 1,
    "decay": 0.0,
    "dropout": 0.0,
    "learning_rate": 1e-3,
    "batch_size": 250,
    "device": "cpu",
}
LINES = {
    "ConvDF": (ConvDF(), "#c0392b"),
    "NnDF": (NnDF(), "#2c7fb8"),
    "NnDF, ascent": (NnDF(ascent=True), "#238b45"),
}


def simulated(n: int, seed: int) -> tuple[np.ndarray, ...]:
    """Twenty columns, two of which matter; half of the positives come within two days."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 20))
    final = rng.uniform(size=n) < 1 / (1 + np.exp(1.0 - X[:, 0] - X[:, 1]))
    elapsed, wait = rng.uniform(0, 14, n), rng.exponential(3.0, n)
    y = final & (wait <= elapsed)
    return X, y, elapsed, np.where(y, wait, np.nan), final


X, y, elapsed, delay, _ = simulated(2000, 0)
test_X, *_, final = simulated(20_000, 1)
labels = check_labels(y, elapsed, delay, None, 5.0, 14.0)
plain = ConvDF().risk(labels, None)
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), constrained_layout=True)
for name, (method, color) in LINES.items():
    model = NetworkModel(**FREE)
    encoded, later = model.encode(X, labels.weight), model.transform(test_X)
    sunk, losses = [], []
    for fitted in model.path(encoded, method.risk(labels, None), EPOCHS):
        sunk.append(plain.negative_part(fitted.margins(encoded)))
        p = 1 / (1 + np.exp(-fitted.margins(later)[:, 0]))
        losses.append(log_losses(final, p).mean())
    print(
        f"{name:14} J- {sunk[-1]:+.3f} (least {min(sunk):+.3f}), log loss {losses[-1]:.3f} (least {min(losses):.3f}, most {max(losses):.3f})"
    )
    left.plot(EPOCHS, sunk, color=color, label=name)
    right.plot(EPOCHS, losses, color=color, label=name)
left.axhline(0.0, color="#888", linewidth=0.8)
left.set_ylabel("negative part of the risk, training rows")
left.set_ylim(-2.0, 0.5)
left.set_xlabel("epoch")
right.set_ylabel("log loss of new rows, final labels")
right.set_xlabel("epoch")
right.set_ylim(0.45, 1.6)
left.legend(frameon=False, loc="lower right")
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
figure.savefig(Path(__file__).with_name("nndf.png"), dpi=130)
