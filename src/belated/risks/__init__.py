"""What to minimise: each cost with its derivatives, written once for NumPy and torch.

May import nothing but :mod:`belated.arrays`; a new likelihood is one file here.
"""
