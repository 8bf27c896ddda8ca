"""Rows to numbers: the encoder of tables, hashed fields, and where a value is hashed to.

May import tables and cluster.
"""
