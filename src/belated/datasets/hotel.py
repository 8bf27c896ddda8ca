"""Hotel bookings and their cancellations: real labels that arrive late.

N. Antonio, A. de Almeida, L. Nunes, "Hotel booking demand datasets", Data in Brief 22 (2019), CC BY 4.0: two hotels in
Portugal, stays from July 2015 to August 2017. The data is not part of this package; pass the folder of your own copy.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from belated.notices import logger

_MONTHS = [date(2000, month, 1).strftime("%B") for month in range(1, 13)]
_NUMBERS = [
    "LeadTime",
    "StaysInWeekendNights",
    "StaysInWeekNights",
    "Adults",
    "Children",
    "Babies",
    "IsRepeatedGuest",
    "PreviousCancellations",
    "PreviousBookingsNotCanceled",
    "ADR",
    "TotalOfSpecialRequests",
]
_TEXTS = [
    "HotelNumber",
    "Meal",
    "MarketSegment",
    "DistributionChannel",
    "ReservedRoomType",
    "Agent",
    "Company",
    "CustomerType",
]


def load_hotel_bookings(folder: str | Path) -> pa.Table:
    """Read ``H1.parquet`` and ``H2.parquet`` as a log: ``booked``, ``cancelled``, and what was known at booking.

    ``booked`` is the date of stay less the lead time; ``cancelled`` is the date of a cancellation (a no-show is none).
    The source was sampled by date of stay, so only bookings made from 2015-09-01 to 2016-11-30 are a complete stream;
    others are left out, and so are the few cancelled before they were booked (their number is logged). Columns filled in
    after booking, which would leak the label, are left out as well.

    Examples
    --------
    >>> from belated.datasets import load_hotel_bookings
    >>> try:
    ...     load_hotel_bookings("no such folder")
    ... except FileNotFoundError as error:
    ...     print("Get the files first.")
    Get the files first.
    """
    files = [Path(folder) / f"{hotel}.parquet" for hotel in ("H1", "H2")]
    absent = [str(file) for file in files if not file.exists()]
    if absent:
        raise FileNotFoundError(
            f"no file {' and '.join(absent)}. See belated.datasets.hotel for the source of the data."
        )
    table = pa.concat_tables([pq.read_table(file) for file in files], promote_options="permissive")
    text = {
        name: pc.utf8_trim_whitespace(table[name].cast(pa.string()))
        for name in [*_TEXTS, "ArrivalDateMonth", "ReservationStatus"]
    }
    stays = [
        date(year, _MONTHS.index(month) + 1, day)
        for year, month, day in zip(
            table["ArrivalDateYear"].to_pylist(),
            text["ArrivalDateMonth"].to_pylist(),
            table["ArrivalDateDayOfMonth"].to_pylist(),
            strict=True,
        )
    ]
    booked = [stay - timedelta(days=lead) for stay, lead in zip(stays, table["LeadTime"].to_pylist(), strict=True)]
    columns = {
        "booked": pa.array(booked, pa.date32()).cast(pa.timestamp("us")),
        "cancelled": pc.if_else(
            pc.equal(text["ReservationStatus"], "Canceled"),
            table["ReservationStatusDate"].cast(pa.timestamp("us")),
            None,
        ),
        "StayMonth": pa.array([stay.strftime("%b") for stay in stays]),
        "StayWeekday": pa.array([stay.strftime("%a") for stay in stays]),
    }
    columns |= {name: table[name].cast(pa.float64()) for name in _NUMBERS}
    columns |= {name: pc.if_else(pc.equal(text[name], "NULL"), None, text[name]) for name in _TEXTS}
    log = pa.table(columns)
    log = log.filter((pc.field("booked") >= datetime(2015, 9, 1)) & (pc.field("booked") <= datetime(2016, 11, 30)))
    impossible = pc.fill_null(pc.less(log["cancelled"], log["booked"]), False)
    logger.info("hotel bookings: %d cancelled before they were booked, left out", int(np.sum(impossible.to_numpy())))
    return log.filter(pc.invert(impossible))
