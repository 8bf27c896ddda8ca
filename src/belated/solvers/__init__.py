"""What minimises a function of a long vector; knows no risk by name, only the interface :mod:`belated.risks.base`.

May import risks (that interface alone) and features (rows of hashed fields).
"""
