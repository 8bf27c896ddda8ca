"""L-BFGS (scipy's) in preconditioned coordinates."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache

import numpy as np
from scipy.optimize import minimize
from threadpoolctl import ThreadpoolController

from belated.solvers.preconditioner import Preconditioner
from belated.solvers.stopping import Solution, gradient_is_small
from belated.typing import Floats

Objective = Callable[[Floats], tuple[float, Floats]]

_RUN = 50  # iterations between new preconditioners
_REFINEMENTS = 5
_COARSE = 1e-6  # a tolerance from which a result needs no refinement


def minimise_preconditioned(
    objective: Objective, precondition: Callable[[Floats], Preconditioner], start: Floats, tol: float, max_iter: int
) -> Solution:
    """Minimise until the largest entry of the preconditioned gradient is at most ``tol``, or ``max_iter`` is spent.

    The preconditioner is made anew every few iterations, and when a line search fails, as it may near the limit of
    floating point; a point from which that brings no progress is final.
    """
    with _one_blas_thread():
        theta, n_iter, norm = start, 0, np.inf
        while True:
            scaling = precondition(theta)

            def scaled(u: Floats, scaling: Preconditioner = scaling) -> tuple[float, Floats]:
                value, gradient = objective(scaling.theta(u))
                return value, scaling.gradient(gradient)

            options = {
                "maxiter": min(_RUN, max_iter - n_iter),
                "maxfun": 20 * max_iter,
                "maxcor": 20,
                "maxls": 15,
                "ftol": 1e-15,  # below this a line search looks for a decrease among rounding errors
                "gtol": tol,
            }
            result = minimize(scaled, scaling.inverse(theta), jac=True, method="L-BFGS-B", options=options)
            theta, n_iter = scaling.theta(result.x), n_iter + int(result.nit)
            previous, norm = norm, float(np.abs(result.jac).max(initial=0.0))
            stuck = result.nit < _RUN and norm > 0.5 * previous
            if gradient_is_small(norm, tol) or n_iter >= max_iter or stuck:
                break
        if gradient_is_small(norm, tol) and tol >= _COARSE:
            return Solution(theta, n_iter, norm, float(result.fun))
        theta, norm, value = _refine(objective, precondition(theta), theta)
    return Solution(theta, n_iter, norm, value)


def _one_blas_thread() -> AbstractContextManager[object]:
    """Threads cost more than they gain on vectors of this length, and several processes would fight over the cores.

    The limit is the process's own, so fits in worker threads, which may overlap, leave it alone.
    """
    if threading.current_thread() is not threading.main_thread():
        return nullcontext()
    return _libraries().limit(limits=1, user_api="blas")


@cache
def _libraries() -> ThreadpoolController:
    """Finding the libraries takes as long as a small fit."""
    return ThreadpoolController()


def _refine(objective: Objective, scaling: Preconditioner, theta: Floats) -> tuple[Floats, float, float]:
    """Steps that look at gradients alone, which stay exact where differences of values are lost in rounding.

    Where the preconditioner is the Hessian these are Newton's.
    """
    value, gradient = objective(theta)
    scaled_gradient = scaling.gradient(gradient)
    norm = float(np.abs(scaled_gradient).max(initial=0.0))
    for _ in range(_REFINEMENTS):
        trial = theta - scaling.theta(scaled_gradient)
        trial_value, gradient = objective(trial)
        scaled_gradient = scaling.gradient(gradient)
        trial_norm = float(np.abs(scaled_gradient).max(initial=0.0))
        if not trial_norm < 0.5 * norm:
            break
        theta, norm, value = trial, trial_norm, trial_value
    return theta, norm, value
