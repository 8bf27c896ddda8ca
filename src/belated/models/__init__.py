"""The engines, one a file; each fits any risk and knows nothing of methods."""

from belated.models.base import Model
from belated.models.linear import LinearModel

__all__ = ["LinearModel", "Model"]
