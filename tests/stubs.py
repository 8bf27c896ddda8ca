"""Learners that answer without fitting anything, and risks laid out flat."""

from __future__ import annotations

import numpy as np

from belated import SoftLabels
from belated.methods import METHODS
from belated.methods.base import Taught, no_learner

# The settings of a teacher are chosen by cross-validation, which looks at rows one by one: laws about fits need them fixed.
FIXED = [SoftLabels(l2=1e-3) if name == "soft-labels" else name for name in METHODS]
UNPENALISED = [SoftLabels(l2=0.0) if name == "soft-labels" else name for name in METHODS]


class StubLearner:
    """Random margins for auxiliary fits, and a teacher that was not taught."""

    def __init__(self, n, seed=1):
        self.rng, self.n = np.random.default_rng(seed), n

    def __call__(self, risk, rows, groups, new_groups):
        return self.rng.normal(size=self.n)

    def teach(self, method, labels, known=None, l2=None):
        risk = method.risk(labels, no_learner)
        return Taught(self.rng.normal(size=(self.n, risk.n_margins)), risk.start()[1], risk.link)


def flat(risk, n):
    """What a model minimises, and over how many rows: where rows occur in groups, the risk of the occurrences."""
    return (risk, n) if risk.occurrences is None else (risk.occurrences.risk, len(risk.occurrences.row))
