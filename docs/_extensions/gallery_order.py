"""The order of the gallery: what comes first is what people ask first."""

from __future__ import annotations

GALLERY = [
    "plot_how_long_to_wait.py",
    "plot_what_waiting_costs.py",
    "plot_new_campaign.py",
    "plot_delays_by_segment.py",
    "plot_choosing_a_horizon.py",
    "plot_trees_learn_who_is_young.py",
    "hotel_cancellations.py",
    "plot_chargebacks.py",
    "plot_leads.py",
    "plot_readmissions.py",
    "plot_stream_or_refit.py",
    "plot_forecast.py",
    "plot_experiment.py",
    "plot_monitor.py",
]


def in_the_order_of_the_gallery(name: str) -> tuple[int, str]:
    return (GALLERY.index(name) if name in GALLERY else len(GALLERY), name)
