"""Compiled code is kept where it can be, and made anew where nothing can be written."""

from __future__ import annotations

import numba

from belated import compiling


def test_without_a_place_for_it_code_is_compiled_anew(monkeypatch):
    real, asked = numba.njit, []

    def nowhere(cache=False, **options):
        asked.append(cache)
        if cache:
            raise RuntimeError("cannot cache function 'twice': no locator available")
        return real(**options)

    monkeypatch.setattr(compiling.nb, "njit", nowhere)

    @compiling.njit(inline="always")
    def twice(x):
        return 2 * x

    assert twice(21) == 42 and asked == [True, False]
