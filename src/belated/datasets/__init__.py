"""Logs to try things on: simulated ones, and readers of public data that the user has.

May import data (to read files) and nothing above it.
"""

from belated.datasets.campaigns import simulate_campaigns
from belated.datasets.clicks import simulate_clicks
from belated.datasets.example import example_log
from belated.datasets.hotel import load_hotel_bookings
from belated.datasets.scores import simulate_scores

__all__ = ["example_log", "load_hotel_bookings", "simulate_campaigns", "simulate_clicks", "simulate_scores"]
