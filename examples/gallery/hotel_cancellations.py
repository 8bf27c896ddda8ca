"""
Cancellation of bookings: real data
===================================

.. admonition:: Stored output

   The data of this page is real, and not part of this project: N. Antonio, A. de Almeida, L. Nunes, "Hotel booking demand datasets", *Data in Brief* 22 (2019), CC BY 4.0.
   What you see below was stored when somebody who has a copy ran this file; it is not run when the site is built. With your own copy (``H1.parquet`` and ``H2.parquet`` in a folder):
   ``python examples/gallery/hotel_cancellations.py FOLDER``

70,557 bookings of two hotels, and for each the date on which it was cancelled, if it was. Which of today's bookings will be cancelled within 90 days?
"""

# sphinx_gallery_thumbnail_path = 'stored/hotel_methods.png'
import contextlib
import io
import sys
import textwrap
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import belated
from belated.datasets import load_hotel_bookings

stored = Path(__file__).resolve().parents[2] / "docs" / "stored"
said = io.StringIO()

# %%
# How late are cancellations, and what do the newest bookings hide? As the table was on 31 August 2016, the rate as it stood fell towards that day; what was to be expected
# in the end did not. (Of the very last weeks it rests on few cancellations.)

bookings = load_hotel_bookings(sys.argv[1]).to_pandas()
log = belated.EventLog.from_frame(bookings, arrival="booked", outcome="cancelled")
day = "2016-08-31"
then = bookings[bookings["booked"] <= day]
then = then.assign(cancelled=then["cancelled"].where(then["cancelled"] <= day))
known = belated.EventLog.from_frame(then, arrival="booked", outcome="cancelled", until=day)
found = belated.diagnose(known, horizon="90d")
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
belated.plot.delay_curve(found, ax=left)
left.set_title("How soon cancellations come")
belated.plot.maturity(found, ax=right)
right.set_title("Rate by day of booking")
figure.savefig(stored / "hotel_delays.png", dpi=110)

# %%
# .. image:: /stored/hotel_delays.png
#    :alt: Left, the share of cancellations seen by age: half within 15 days, 90% within 60. Right, the rate of cancellation by week of booking, so far and as expected in the end: the former falls in the last months.
#
# Go back to the end of each month from February to July 2016, fit on what was known then, predict the bookings of the month after, and score against what became of them.

with contextlib.redirect_stdout(said):
    result = belated.backtest(
        log,
        horizon="90d",
        lookback="180d",
        cutoffs=[
            "2016-02-29",
            "2016-03-31",
            "2016-04-30",
            "2016-05-31",
            "2016-06-30",
            "2016-07-31",
        ],
        methods=["tw", "convdf", "fsiw", "hazard", "dfm", "dfm-piecewise"],
        progress=False,
    )
    print(textwrap.fill(result.recommend().why, 100))
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
belated.plot.method_table(result, ax=left)
left.set_title("Six months, each predicted from the past")
belated.plot.calibration(result, ax=right)
right.set_title("Are probabilities right?")
figure.savefig(stored / "hotel_methods.png", dpi=110)
(stored / "hotel.txt").write_text(said.getvalue())

# %%
# .. image:: /stored/hotel_methods.png
#    :alt: Left, the log loss of each method with intervals; dfm-piecewise is nearest to the oracle and labels as they stand are among the worst. Right, calibration: labels as they stand predict too little.
#
# What it says in words:
#
# .. literalinclude:: /stored/hotel.txt
#    :language: none
#
# The interval is wide: six months are few, and they differ. :doc:`/hotel` goes through it method by method, with boosted trees and networks.
