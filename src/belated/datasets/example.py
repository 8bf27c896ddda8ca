"""A small log that needs no file: for examples, first steps and questions."""

from __future__ import annotations

from belated.data.event_log import EventLog
from belated.datasets.clicks import simulate_clicks


def example_log() -> EventLog:
    """A simulated log of 6,000 clicks in thirty days, with conversions that come up to 14 days later.

    It is :func:`simulate_clicks` ``(30, 200)``, read by :meth:`belated.EventLog.from_frame`.

    Examples
    --------
    >>> from belated.datasets import example_log
    >>> log = example_log()
    >>> len(log), log.features
    (6000, ['campaign', 'device', 'country', 'price'])
    """
    return EventLog.from_frame(simulate_clicks(30, 200), arrival="click_time", outcome="conversion_time")
