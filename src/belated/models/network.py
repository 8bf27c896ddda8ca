"""NetworkModel: margins from a neural network, trained by PyTorch on mini-batches of any risk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from belated.extras import needs
from belated.features.network_inputs import NetworkInputs
from belated.models.base import Model, require_number, require_risk, require_setting, require_whole
from belated.models.network_training import NetworkRows, Training, build, margins_of
from belated.notices import progress_bar
from belated.risks.base import Risk
from belated.solvers.device_rows import resolve_device
from belated.typing import Bools, Floats, Ints

_AUXILIARY_EPOCHS = 5


class NetworkModel(Model):
    """Minimise a risk by a neural network (PyTorch, extra ``torch``), AdamW and mini-batches.

    By default the network is :class:`belated.models.network_module.TableNetwork`: embeddings of categories, numbers spread over
    ranges between quantiles, residual blocks. Batches are stratified, so that scarce rows (late ones, positives) are in each of
    them, and weighted, so that a batch's gradient is on average that of the whole risk.

    Parameters
    ----------
    epochs : int, optional
        How often all rows are seen. None: chosen in fit, by cross-validation over blocks of arrival time, on the method's own
        risk.
    learning_rate : float
        Of AdamW.
    decay : float
        AdamW's weight decay times learning rate times batches: of the weights, exp(-decay) would be left after an epoch without gradients.
    batch_size : int, optional
        By default a hundredth of the rows, between 256 and 16,384.
    width, depth, embedding, dropout : numbers
        Of the network: units in a layer, residual blocks, length of an embedding.
    embedding_rows : int
        The table of embeddings has at most so many; further categories share them.
    bins : int
        Ranges of a number.
    rare : int
        Categories that occur less often than this share an embedding.
    delay_model : {"linear", "full"}
        How much freedom the delay margin of DFM has: see :class:`belated.BoostingModel`.
    module : nn.Module, optional
        A network of your own: called with numbers (n, d) float32 and places of categories (n, k), it returns margins (n, m), where m is
        1 but for DFM and STC (2). A number is the share of its training quantiles that a row has passed, from 0 to 1, NaN where missing. It must fit the method; it is copied, not changed. A model with
        one is kept by pickle or joblib, not by ``save``.
    device : {"auto", "cpu", "cuda"}
    bf16 : bool
        On a GPU, compute the network in bfloat16; weights, and the risk itself, are never rounded.
    checkpoint : path, optional
        A file that keeps the state after each epoch. A fit that is interrupted and run again with the same rows and parameters
        goes on there and ends with the same result. Where the file is of another training that was finished, it is begun anew; where
        that was not finished, it is refused. Fits that only choose a setting, and backtests, keep no file.
    seed : int
    progress : bool
        Whether to show a progress bar of epochs.

    Attributes
    ----------
    curve_ : list of float
        The mean risk of the batches of each epoch.
    shared_ : array of shape (s,)
    base_ : array of shape (m,)
        The constant to which the network adds.

    Examples
    --------
    >>> from belated import DelayedFeedbackClassifier, NetworkModel
    >>> DelayedFeedbackClassifier("nndf", window=5.0, model=NetworkModel(epochs=5, width=64))
    DelayedFeedbackClassifier(method='nndf', model=NetworkModel(epochs=5, width=64),
                              window=5.0)
    """

    setting = "epochs"
    grid = (1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 30)
    takes_simplest = False
    auxiliary_follows_setting = False
    minibatches = True
    takes_groups = True
    takes_kinks = True
    takes_missing = True

    def __init__(
        self,
        epochs: int | None = None,
        learning_rate: float = 1e-3,
        decay: float = 0.35,
        batch_size: int | None = None,
        width: int = 128,
        depth: int = 2,
        embedding: int = 8,
        dropout: float = 0.2,
        embedding_rows: int = 2**20,
        bins: int = 16,
        rare: int = 50,
        delay_model: str = "linear",
        module: Any = None,
        device: str = "auto",
        bf16: bool = True,
        checkpoint: str | Path | None = None,
        seed: int = 0,
        progress: bool = False,
    ) -> None:
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.decay = decay
        self.batch_size = batch_size
        self.width = width
        self.depth = depth
        self.embedding = embedding
        self.dropout = dropout
        self.embedding_rows = embedding_rows
        self.bins = bins
        self.rare = rare
        self.delay_model = delay_model
        self.module = module
        self.device = device
        self.bf16 = bf16
        self.checkpoint = checkpoint
        self.seed = seed
        self.progress = progress

    def encode(self, X: Any, weight: Floats) -> NetworkRows:
        with needs("torch"):
            import torch  # noqa: F401
        self._check()
        self.inputs_ = NetworkInputs.learn(X, weight, self.embedding_rows, self.bins, self.rare)
        return self.transform(X)

    def transform(self, X: Any) -> NetworkRows:
        if isinstance(X, NetworkRows):
            return X
        return NetworkRows.of(*self.inputs_.transform(X), self._device())

    def _device(self) -> str:
        """The device; of a fitted model that was trained on a GPU, the CPU where there is none."""
        try:
            return resolve_device(self.device)
        except ValueError:
            if self.device != "cuda" or not hasattr(self, "base_"):
                raise
            return "cpu"

    def fit(self, encoded: NetworkRows, risk: Risk) -> NetworkModel:
        require_risk(self, risk)
        epochs = int(require_setting(self))
        training = Training(self, encoded, risk, self.checkpoint, epochs=epochs)
        with progress_bar(f"{type(self).__name__}: epochs", epochs, self.progress) as advance:
            while training.done < epochs:
                training.one_epoch()
                advance(training.done)
        self.__dict__.update(training.model(epochs).__dict__)
        return self

    def path(self, encoded: NetworkRows, risk: Risk, values: Sequence[float]) -> Iterator[NetworkModel]:
        """Copies of this model as it is after the first epochs of one and the same training, from few to many."""
        training = Training(self, encoded, risk, None)
        for value in self.simplest_first(values):
            while training.done < value:
                training.one_epoch()
            yield training.model(int(value))

    def margins(self, X: Any) -> Floats:
        rows, net = self.transform(X), self._network()
        if not self.groups_:
            return margins_of(net, rows, self.base_, self.bf16)
        size = self.inputs_.size
        columns = [
            margins_of(net, rows.with_groups(np.full(len(rows), k), size), self.base_, self.bf16)
            for k in range(self.groups_)
        ]
        return np.concatenate(columns, axis=1)

    def auxiliary_margin(self, encoded: NetworkRows, risk: Risk, rows: Bools, groups: Ints, new_groups: Ints) -> Floats:
        size, count = self.inputs_.size, int(max(groups.max(), new_groups.max())) + 1
        training = Training(self, encoded.take(np.flatnonzero(rows)).with_groups(groups, size), risk, None, count)
        for _ in range(_AUXILIARY_EPOCHS):
            training.one_epoch()
        return margins_of(training.averaged.module, encoded.with_groups(new_groups, size), training.base, self.bf16)[
            :, 0
        ]

    @property
    def encoders(self) -> list[Any]:
        return [] if self.inputs_.encoder is None else [self.inputs_.encoder]

    def _network(self) -> Any:
        """The network with its weights, built where a file or another process has left only those."""
        if not hasattr(self, "_net_"):
            with needs("torch"):
                import torch

            self._net_ = build(self, len(self.base_), self.simple_, self.groups_)
            self._net_.load_state_dict({name: torch.as_tensor(value) for name, value in self.weights_.items()})
            self._net_.to(self._device()).eval()
        return self._net_

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state["checkpoint"] = None if self.checkpoint is None else str(self.checkpoint)
        if "_net_" in state:
            state["weights_"] = {name: value.cpu().numpy() for name, value in state.pop("_net_").state_dict().items()}
        return state

    def check_fitted(self) -> None:
        try:
            self._network()
        except (RuntimeError, TypeError, IndexError) as error:
            raise ValueError(f"its weights do not fit its network ({error})") from None

    def _check(self) -> None:
        if self.delay_model not in ("linear", "full"):
            raise ValueError(f"delay_model={self.delay_model!r} is not known; choose 'linear' or 'full'.")
        whole = {"epochs": 0, "batch_size": 1, "width": 1, "depth": 0, "embedding": 1, "embedding_rows": 1, "bins": 1, "rare": 1, "seed": 0}  # fmt: skip
        for name, least in whole.items():
            if getattr(self, name) is None and name not in ("epochs", "batch_size"):
                raise ValueError(f"{name}=None must be a whole number of at least {least}.")
            require_whole(self, name, least)
        require_number(self, "learning_rate", 0.0, np.inf)
        require_number(self, "decay", 0.0, np.inf, open_low=False)
        require_number(self, "dropout", 0.0, 1.0, open_low=False)
        if self.module is not None:
            import torch

            if not isinstance(self.module, torch.nn.Module):
                raise ValueError(f"module={self.module!r} must be an nn.Module of PyTorch, or None.")
