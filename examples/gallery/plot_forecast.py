"""
How many more will come? A forecast of open rows
================================================

Of what has arrived so far, how much will still turn positive, and when? Finance asks this every month end, and usually gets a spreadsheet. Here it comes from
a model, with bands that were tried on the log's own past, and beside the spreadsheet. Simulated clicks.
"""

import matplotlib.pyplot as plt

import belated
from belated.datasets import simulate_clicks

log = belated.EventLog.from_frame(
    simulate_clicks(60, 400), arrival="click_time", outcome="conversion_time"
)
found = belated.forecast(log, horizon="14d", as_of="2024-02-20", group="device", cutoffs=4)
print(found.verdict)

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
belated.plot.forecast(found, ax=left)
left.set_title("All that will have come")
belated.plot.forecast(found, what="by_arrival", ax=right)
right.set_title("By day of arrival")
plt.show()

# %%
# The log goes on after the day of the forecast, so we can see what came. The forecast did not.

total = found.total
low, high = total["bands"]["95%"]
print(
    f"to come: {total['to_come']:.0f} (95% band {low:.0f} to {high:.0f}); came: {total['came']:.0f}"
)

# %%
# The same was asked at four dates of the past, of this forecast and of the chain ladder, which is what the spreadsheet does:

for past in found.past:
    print(
        f"{past['as_of'][:10]}: came {past['came']:.0f}, forecast {past['forecast']:.0f},"
        f" chain ladder {past['chain_ladder']:.0f}"
    )

# %%
# Delays are much the same for all clicks here, which is all that the chain ladder assumes, so it does as well or better (a test of few dates). Where groups differ in
# their delays, or the mix of groups moves, it falls behind: on the hotel bookings its error is four times as large (:doc:`../forecasting`).
