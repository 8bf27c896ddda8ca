"""The experiments of Yasui and Kato (KDD 2022), of Chapelle (KDD 2014) and of the streaming literature, as ``belated reproduce`` runs them again.

May import evaluation, streaming, datasets and everything below them; settings of long runs and their results are in ``experiments/``.
"""
