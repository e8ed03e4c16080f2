"""A torch module as a classifier with ``fit`` and ``predict_proba``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch


class TorchClassifier:
    """Trains a module that gives one logit per row, with Adam on the logistic loss over all rows at once.

    Args:
        make_module: makes a module from the number of columns; its output is (n, 1) or (n,).
        epochs: steps over all rows.
        learning_rate: of Adam.
        weight_decay: of Adam.
        random_state: seed of the initial weights; no global random state is changed.
    """

    def __init__(
        self,
        make_module: Callable[[int], torch.nn.Module],
        epochs: int = 200,
        learning_rate: float = 0.01,
        weight_decay: float = 0.0,
        random_state: int = 0,
    ) -> None:
        self.make_module, self.epochs, self.random_state = make_module, epochs, random_state
        self.learning_rate, self.weight_decay = learning_rate, weight_decay

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor; ``deep`` is scikit-learn's and changes nothing."""
        names = ("make_module", "epochs", "learning_rate", "weight_decay", "random_state")
        return {name: getattr(self, name) for name in names}

    def set_params(self, **params: Any) -> TorchClassifier:
        """Set arguments of the constructor, as scikit-learn does.

        Raises:
            ValueError: an unknown one.
        """
        for name, value in params.items():
            if name not in self.get_params():
                raise ValueError(f"TorchClassifier has no setting {name!r}")
            setattr(self, name, value)
        return self

    def fit(self, X: Any, y: Any) -> TorchClassifier:
        """Train on rows (n, d) with two labels (n,)."""
        import torch

        self.classes_, codes = np.unique(np.asarray(y), return_inverse=True)
        x, target = self._tensor(X), torch.tensor(codes, dtype=torch.float32)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(self.random_state))
            self.module_ = self.make_module(x.shape[1])
            adam = torch.optim.Adam(self.module_.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay)
            self.module_.train()
            for _ in range(self.epochs):
                adam.zero_grad()
                logits = self.module_(x).reshape(-1)
                torch.nn.functional.binary_cross_entropy_with_logits(logits, target).backward()  # type: ignore[no-untyped-call]
                adam.step()
        self.module_.eval()
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the two labels, float64 (n, 2)."""
        import torch

        with torch.no_grad():
            p = torch.sigmoid(self.module_(self._tensor(X)).reshape(-1)).double().numpy()
        return np.column_stack([1 - p, p])

    def parameter_arrays(self) -> list[NDArray[np.float32]]:
        """The module's parameters as arrays that share its memory."""
        return [parameter.detach().numpy() for parameter in self.module_.parameters()]

    @staticmethod
    def _tensor(X: Any) -> torch.Tensor:
        import torch

        return torch.from_numpy(np.ascontiguousarray(np.asarray(X), dtype=np.float32))
