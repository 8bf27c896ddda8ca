"""Outcomes that end before the arrivals do: a feed that is late looks like a rate that has fallen."""

from __future__ import annotations

_IMPOSSIBLE = 10.0  # as many are expected where none came; by chance that happens once in 20,000 times
_MATTERS = 0.05  # of what the estimate is made of


def silence(expected: float, whole: float, last: str, now: str, remedy: str) -> str | None:
    """What to say where none of the outcomes that were expected between the last one and now has come; None where that may be chance, or is a small part of the ``whole``.

    >>> silence(24.3, 300, "2024-03-29", "2024-03-31", "Say until='2024-03-29'.")
    "No outcome after 2024-03-29, where 24 were expected by 2024-03-31: outcomes seem to be known up to then only. Say until='2024-03-29'."
    >>> silence(2.0, 300, "2024-03-29", "2024-03-31", "")
    """
    if expected < max(_IMPOSSIBLE, _MATTERS * whole):
        return None
    return f"No outcome after {last}, where {expected:.0f} were expected by {now}: outcomes seem to be known up to then only. {remedy}"
