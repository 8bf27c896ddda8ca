"""Quiet while fits are tried, in one thread, and never for longer."""

from __future__ import annotations

import logging
import threading
import warnings

import pytest

from belated.notices import logger, overheard, quietly, warn


def test_nothing_is_heard_inside_and_all_outside(caplog):
    caplog.set_level(logging.INFO, "belated")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with quietly():
            with quietly():
                warn("inside")
            logger.info("inside")
            warn("inside")
    logger.info("outside")
    assert caplog.messages == ["outside"]
    with pytest.warns(UserWarning, match="outside"):
        warn("outside")


def test_uses_that_overlap_leave_nobody_mute(caplog):
    caplog.set_level(logging.INFO, "belated")
    inside, leave = threading.Event(), threading.Event()

    def first():
        with quietly():
            inside.set()
            leave.wait(10)

    worker = threading.Thread(target=first)
    worker.start()
    inside.wait(10)
    logger.info("while another thread is quiet")
    with quietly():
        leave.set()
        worker.join()
        logger.info("unheard")
    logger.info("after")
    assert caplog.messages == ["while another thread is quiet", "after"]
    assert logger.getEffectiveLevel() == logging.INFO


def listen(told, then=None):
    with overheard(UserWarning) as heard:
        warn("said")
        if then is not None:
            raise then
    told += heard


def test_what_was_overheard_is_heard_as_ever_even_before_an_error():
    told = []
    with pytest.warns(UserWarning, match="said"):
        listen(told)
    assert told == ["said"]
    with pytest.warns(UserWarning, match="said"):  # noqa: SIM117 since one block is to hold one statement
        with pytest.raises(KeyError):
            listen(told, KeyError())
