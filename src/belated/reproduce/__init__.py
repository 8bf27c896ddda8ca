"""The experiments of Yasui and Kato (KDD 2022) and of Chapelle (KDD 2014), run again."""
