"""
How long must I wait for labels?
================================

You have a log of clicks and conversions, and want to know how old a click must be before "has not converted" means "will not". Before any model, look at
the delays themselves. The log is simulated: two months of clicks in campaigns.
"""

import matplotlib.pyplot as plt

import belated
from belated.datasets import simulate_campaigns

log = belated.EventLog.from_frame(
    simulate_campaigns(), arrival="click_time", outcome="conversion_time", until="2024-03-01"
)
found = belated.diagnose(log, horizon="30d")

# %%
# The **delay curve** says which share of all positives within the horizon has been seen by each age. It corrects for young clicks, which have not had
# the time to show theirs; a plain average over the conversions that are there would say that they come sooner than they do.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
belated.plot.delay_curve(found, ax=left)
left.set_title("How soon positives come")
belated.plot.maturity(found, ax=right)
right.set_title("What the newest rows hide")
plt.show()

# %%
# On the right, the rate by day of click: as it stands, and as expected in the end. The fall towards today is mostly not a fall of the rate: young clicks have not shown
# theirs yet. Part of it is, as the findings below say.
#
# A **window** is the age from which you take a label for final. Each window misses something:

for window in found.summary()["windows"]:
    print(
        f"{window['days']:5.1f} days: {window['positives_lost']:6.1%} of positives come later"
    )

# %%
# And this is what the diagnosis says in words:

for sentence in found.summary()["findings"]:
    print("-", sentence)

# %%
# So waiting for nine positives of ten takes weeks here, and still misses the tenth. What that costs is the next question:
# :ref:`sphx_glr_gallery_plot_what_waiting_costs.py`.
