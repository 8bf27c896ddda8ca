"""Which files are looked through for doctests."""

import os
from importlib.util import find_spec

os.environ.setdefault("MPLBACKEND", "Agg")  # examples draw, and no window opens

# A network is a class of torch, so its file cannot be imported without.
collect_ignore = [] if find_spec("torch") else ["src/belated/models/network_module.py"]
