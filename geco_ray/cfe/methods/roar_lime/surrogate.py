"""LIME's local surrogate for numeric tables: a weighted logistic regression on a Gaussian sample.

What the package (0.2.0.1) computes without discretisation and feature selection, for one request at a time and without
the package: the sample, its hard labels, the kernel weights, the regression, and the mapping of the rounded
coefficients to input units. The regression is solved to its exact optimum, or as far as the package's solver goes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from geco_ray.cfe.search.products import product, solve

_WARM_ROWS = 2000
_MAX_NEWTON = 50
_TOLERANCE = 1e-6  # the last step; what is left after it is of the order of its square
_DECIMALS = 4
_LIME_ITERATIONS = 1000

Fit = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""Rows (m, d), their labels and weights (m,) to coefficients (d + 1,), the intercept last."""


@dataclass(frozen=True, eq=False)
class Surrogate:
    """A linear model in input units, ``weights`` float64 (d,) and ``intercept``; the share of favourable samples."""

    weights: NDArray[np.float64]
    intercept: float
    favourable_share: float


@dataclass(frozen=True, eq=False)
class Scaler:
    """Mean and population standard deviation of the training matrix, float64 (d,); a constant feature has scale 1."""

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]

    @staticmethod
    def of(train_x: NDArray[np.float32]) -> Scaler:
        """The scaler that LIME fits."""
        scale = train_x.astype(np.float64).std(axis=0)
        return Scaler(train_x.astype(np.float64).mean(axis=0), np.where(scale > 1e-12, scale, 1.0))


def explain(
    x0: NDArray[np.float64],
    z: NDArray[np.float64],
    scaler: Scaler,
    centre: NDArray[np.float64],
    favourable: Callable[[torch.Tensor], torch.Tensor],
    device: str = "cpu",
    fit: Fit | None = None,
) -> Surrogate | None:
    """Fit the surrogate of one request.

    Args:
        x0: the factual, (d,); it replaces the first row of the sample.
        z: standard normal draws (samples, d).
        scaler: the training matrix's scaler.
        centre: what the sample lies around, (d,): the training mean in the released code.
        favourable: labels rows (m, d) float32 on ``device``.
        device: a torch device name.
        fit: the regression, :func:`fit_logistic` or :func:`fit_as_lime`; the first by default.

    Returns:
        The surrogate, or ``None`` if the sample has one class only.
    """
    mean, scale = (torch.tensor(a, device=device) for a in (scaler.mean, scaler.scale))
    scaled = torch.tensor(z, device=device)
    if centre is not scaler.mean:
        scaled += (torch.tensor(centre, device=device) - mean) / scale
    scaled[0] = (torch.tensor(x0, device=device) - mean) / scale
    labels = favourable((scaled * scale + mean).float())
    share = float(labels.double().mean())
    if share in (0.0, 1.0):
        return None
    coefficients = (fit or fit_logistic)(scaled, labels, kernel_weights(scaled))
    rounded = np.round(coefficients.cpu().numpy(), _DECIMALS)
    weights = rounded[:-1] / scaler.scale
    return Surrogate(weights, float(rounded[-1] - weights @ scaler.mean), share)


def kernel_weights(scaled: torch.Tensor) -> torch.Tensor:
    """LIME's weight of each scaled row (m, d) by its distance r to row 0: sqrt(exp(-r^2 / w^2)), w = 0.75 sqrt(d)."""
    gap = scaled - scaled[0]
    squared = (gap * gap).sum(dim=1)
    return torch.exp(squared / (-2 * 0.5625 * scaled.shape[1]))


def fit_logistic(x: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Minimise sum_i weights_i log(1 + exp(-y_i (x_i b + c))) + |b|^2 / 2 over b and c: scikit-learn's C = 1.

    Newton's method: first on the first 2,000 rows, then on all.

    Args:
        x: float64 (m, d).
        labels: bool (m,), both classes present.
        weights: float64 (m,), positive.

    Returns:
        b and, last, c: float64 (d + 1,).
    """
    design = functional.pad(x, (0, 1), value=1.0)
    beta = torch.zeros(design.shape[1], dtype=x.dtype, device=x.device)
    share = _WARM_ROWS / len(x)
    if share < 0.5 and labels[:_WARM_ROWS].any() and not labels[:_WARM_ROWS].all():
        warm = slice(_WARM_ROWS)
        beta = _newton(design[warm], labels[warm], weights[warm] / share, beta, 1e-3)
    return _newton(design, labels, weights, beta, _TOLERANCE)


def fit_as_lime(x: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """What the released code lets LIME fit: :func:`fit_logistic`'s problem until scikit-learn's L-BFGS is content."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(max_iter=_LIME_ITERATIONS)
    model.fit(x.cpu().numpy(), labels.cpu().numpy().astype(np.int64), sample_weight=weights.cpu().numpy())
    return torch.tensor(np.append(model.coef_[0], model.intercept_[0]), device=x.device)


def _newton(
    design: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor, beta: torch.Tensor, tolerance: float
) -> torch.Tensor:
    """Damped Newton steps until none changes a coefficient by more than ``tolerance``.

    The Hessian is summed in float32, which bends the step a little and not the optimum; the gradient is float64.
    """
    coarse = design.float()
    sign = labels.to(design.dtype) * 2 - 1
    penalty = torch.ones_like(beta)
    penalty[-1] = 0.0
    margin = sign * product(design, beta)
    value = _objective(margin, weights, penalty, beta)
    for _ in range(_MAX_NEWTON):
        miss = torch.sigmoid(-margin)
        gradient = penalty * beta - product(design.T, weights * sign * miss)
        curvature = (weights * miss * (1 - miss)).float().sqrt_()
        half = coarse * curvature[:, None]
        hessian = product(half.T, half).to(design.dtype) + torch.diag(penalty + 1e-9)
        step = solve(hessian, gradient)
        for halving in range(30):
            tried = beta - step * 0.5**halving
            margin = sign * product(design, tried)
            new = _objective(margin, weights, penalty, tried)
            if new <= value + 1e-10 * abs(value):
                break
        beta, value = tried, new
        if float(step.abs().max()) <= tolerance:
            break
    return beta


def _objective(margin: torch.Tensor, weights: torch.Tensor, penalty: torch.Tensor, beta: torch.Tensor) -> float:
    return float(product(weights, functional.softplus(-margin)) + 0.5 * (penalty * beta * beta).sum())
