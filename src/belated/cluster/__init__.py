"""Rows on many machines: one verb over partitions, and arrays whose rows are there. The ground floor, beside tables: imports nothing from other rooms."""
