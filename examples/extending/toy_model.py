"""An engine in one file: linear margins, found by SciPy's L-BFGS without any of the library's own solvers."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize

from belated import TableEncoder
from belated.models.base import Model, require_risk
from belated.risks.base import Risk
from belated.typing import Floats


class ScipyModel(Model):
    """Minimises J + ridge ||W||^2 over margins X W + level, for any risk."""

    def __init__(self, ridge: float = 1e-4) -> None:
        self.ridge = ridge

    def encode(self, X: Any, weight: Floats) -> Floats:
        self.encoder_ = TableEncoder().fit(X, sample_weight=weight)
        return self.transform(X)

    def transform(self, X: Any) -> Floats:
        if isinstance(X, np.ndarray):  # encoded already
            return X
        matrix = self.encoder_.transform(X)
        return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()

    def fit(self, encoded: Floats, risk: Risk) -> ScipyModel:
        require_risk(self, risk)
        m, d = risk.n_margins, encoded.shape[1]

        def unpack(theta: Floats) -> tuple[Floats, Floats, Floats]:
            return theta[: m * d].reshape(m, d), theta[m * d : m * d + m], theta[m * d + m :]

        def objective(theta: Floats) -> tuple[float, Floats]:
            coef, level, shared = unpack(theta)
            value, d_margins, d_shared = risk.value_and_gradient(encoded @ coef.T + level, shared)
            d_coef = d_margins.T @ encoded + 2 * self.ridge * coef
            return value + self.ridge * (coef**2).sum(), np.concatenate([d_coef.ravel(), d_margins.sum(0), d_shared])

        levels, shared = risk.start()
        start = np.concatenate([np.zeros(m * d), levels, shared])
        found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 500})
        self.coef_, self.intercept_, self.shared_ = unpack(found.x)
        return self

    def margins(self, X: Any) -> Floats:
        return self.transform(X) @ self.coef_.T + self.intercept_
