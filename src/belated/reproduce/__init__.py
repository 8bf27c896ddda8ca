"""The experiments of Yasui and Kato (KDD 2022) and of Chapelle (KDD 2014), as ``belated reproduce`` runs them again.

May import evaluation, datasets and everything below them; settings of long runs and their results are in ``experiments/``.
"""
