"""Rows on many machines: one verb over partitions, and arrays whose rows are there. May import nothing but what is open to all."""
