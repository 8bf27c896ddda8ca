"""
How long must I wait?
=====================

x
"""

import belated
from belated.datasets import example_log

ax = belated.plot.delay_curve(example_log(), horizon="14d")
