"""Simulated logs, and the reader of hotel bookings on a small file of the same shape."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

from belated import EventLog
from belated.datasets import load_hotel_bookings, simulate_campaigns, simulate_clicks


def test_clicks_are_the_same_for_a_seed_and_differ_between_seeds():
    assert simulate_clicks(days=5, seed=3).equals(simulate_clicks(days=5, seed=3))
    assert not simulate_clicks(days=5, seed=3).equals(simulate_clicks(days=5, seed=4))


def test_clicks_convert_late_but_never_after_two_weeks():
    log = simulate_clicks(days=40, clicks_per_day=500)
    delay = (log["conversion_time"].to_numpy() - log["click_time"].to_numpy()) / np.timedelta64(1, "D")
    delay = delay[~np.isnan(delay)]
    assert delay.min() >= 0 and delay.max() <= 14.0
    assert_allclose((delay < 1.0).mean(), 0.5, atol=0.06)
    assert 0.08 < len(delay) / log.num_rows < 0.25


def booking(**changes):
    row = {
        "LeadTime": 10,
        "ArrivalDateYear": 2016,
        "ArrivalDateMonth": "March",
        "ArrivalDateDayOfMonth": 15,
        "StaysInWeekendNights": 0,
        "StaysInWeekNights": 2,
        "Adults": 2,
        "Children": 0,
        "Babies": 0,
        "IsRepeatedGuest": 0,
        "PreviousCancellations": 0,
        "PreviousBookingsNotCanceled": 0,
        "ADR": 80.0,
        "TotalOfSpecialRequests": 1,
        "HotelNumber": "H1",
        "Meal": "BB       ",
        "MarketSegment": "Direct",
        "DistributionChannel": "Direct",
        "ReservedRoomType": "A   ",
        "Agent": "       NULL",
        "Company": "       110",
        "CustomerType": "Transient",
        "ReservationStatus": "Canceled",
        "ReservationStatusDate": datetime(2016, 3, 9),
        "IsCanceled": 1,
    }
    return row | changes


def test_hotel_bookings(tmp_path):
    rows = [
        booking(),
        booking(ReservationStatus="No-Show   ", ReservationStatusDate=datetime(2016, 3, 15)),
        booking(ReservationStatusDate=datetime(2016, 3, 1)),  # cancelled before it was booked
        booking(LeadTime=300),  # booked before the complete stream begins
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "H1.parquet")
    pq.write_table(pa.Table.from_pylist([booking(HotelNumber="H2", Children=None)]), tmp_path / "H2.parquet")
    table = load_hotel_bookings(tmp_path)
    assert table.num_rows == 3
    first = table.to_pylist()[0]
    assert first["booked"] == datetime(2016, 3, 5)
    assert first["cancelled"] == datetime(2016, 3, 9)
    assert (first["Meal"], first["Agent"], first["Company"], first["StayWeekday"]) == ("BB", None, "110", "Tue")
    assert table["cancelled"].null_count == 1
    assert not {"IsCanceled", "ReservationStatus"} & set(table.column_names)
    log = EventLog.from_frame(table, arrival="booked", outcome="cancelled")
    assert log.snapshot("2016-03-09").delay.tolist()[0] == 4.0


def test_hotel_bookings_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file .*H1.parquet and .*H2.parquet"):
        load_hotel_bookings(tmp_path)


def test_campaigns_come_go_and_convert_late():
    table = simulate_campaigns(20_000).to_pandas()
    assert table.equals(simulate_campaigns(20_000).to_pandas())
    delay = (table["conversion_time"] - table["click_time"]).dt.total_seconds() / 86400
    assert delay.min() >= 0 and table["conversion_time"].max() <= pd.Timestamp("2024-03-01")
    old = table["click_time"] < pd.Timestamp("2024-02-10")
    assert 1.0 < delay[old].median() < 4.0 and delay[old].quantile(0.9) > 6.0
    first = table.groupby("campaign")["click_time"].min()
    assert (first > pd.Timestamp("2024-01-20")).mean() > 0.25
    rate = delay.notna().groupby(table["click_time"].dt.date).mean()
    assert rate.iloc[-3:].mean() < 0.7 * rate.iloc[10:40].mean()
