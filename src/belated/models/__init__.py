"""One engine a file: each fits any risk, and knows nothing of methods.

May import solvers, risks and features.
"""
