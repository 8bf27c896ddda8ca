"""Which files are looked through for doctests."""

from importlib.util import find_spec

# A network is a class of torch, so its file cannot be imported without.
collect_ignore = [] if find_spec("torch") else ["src/belated/models/network_module.py"]
