"""Write the files of docs/your-data.md into a folder: one simulated log in the ways in which people have theirs.

python examples/your_data/make_files.py files
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from belated.datasets import simulate_campaigns

END = pd.Timestamp("2024-02-29")


def simulated(n: int, seed: int) -> pd.DataFrame:
    """Arrivals and outcomes of two months, with a few features."""
    clicks = simulate_campaigns(n, seed=seed).to_pandas()
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"arrived": clicks["click_time"], "outcome": clicks["conversion_time"]})
    table.loc[table["outcome"] > END, "outcome"] = pd.NaT
    table["campaign"], table["country"], table["device"] = clicks["campaign"], clicks["country"], clicks["device"]
    table["price"] = np.round(rng.gamma(3, 20, n), 2)
    return table[table["arrived"] <= END].reset_index(drop=True)


def by_day(times: pd.Series) -> pd.Series:
    return times.dt.floor("D")


def bookings(folder: Path) -> None:
    table = simulated(4000, 1).rename(columns={"campaign": "channel", "device": "booked_by"})
    times = {"booked": by_day(table.pop("arrived")), "cancelled": by_day(table.pop("outcome"))}
    pd.DataFrame({**times, **table}).to_csv(folder / "bookings.csv", index=False)


def clicks_and_sales(folder: Path) -> None:
    table = simulated(4000, 2)
    table.insert(0, "click_id", [f"c{i:06d}" for i in range(len(table))])
    sales = table[table["outcome"].notna()].sample(frac=1, random_state=0)
    sales = pd.DataFrame({"click_id": sales["click_id"], "conversion_time": sales["outcome"]})
    clicks = table.rename(columns={"arrived": "click_time"}).drop(columns="outcome")
    clicks.to_csv(folder / "clicks.csv.gz", index=False, date_format="%Y-%m-%dT%H:%M:%S")
    sales.to_csv(folder / "sales.csv", index=False, date_format="%Y-%m-%dT%H:%M:%S")


def leads(folder: Path) -> None:
    """As a spreadsheet writes it in much of Europe; lost leads are closed too, and won ones have an amount."""
    table, rng = simulated(4000, 3), np.random.default_rng(3)
    won = table["outcome"].notna().to_numpy()
    lost_on = table["arrived"] + pd.to_timedelta(rng.exponential(9, len(table)), "D")
    lost = ~won & (lost_on <= END).to_numpy()
    closed = table["outcome"].where(won, lost_on.where(lost))
    crm = pd.DataFrame({
        "Erstellt am": table["arrived"].dt.strftime("%d.%m.%Y"),
        "Abgeschlossen am": closed.dt.strftime("%d.%m.%Y"),
        "Status": np.where(won, "gewonnen", np.where(lost, "verloren", "offen")),
        "Quelle": table["campaign"],
        "Land": table["country"].replace({"UK": "Königreich"}),
        "Listenpreis": table["price"],
        "Auftragswert": np.where(won, np.round(table["price"] * rng.uniform(0.7, 1.0, len(table)), 2), np.nan),
    })  # fmt: skip
    crm.to_csv(folder / "leads.csv", sep=";", decimal=",", index=False, encoding="latin-1")


def daily_exports(folder: Path) -> None:
    """Every night the table as it stands, which knows whether but not when."""
    table = simulated(3000, 4)
    arrived, outcome = by_day(table.pop("arrived")), by_day(table.pop("outcome"))
    table.insert(0, "id", np.arange(1, len(table) + 1))
    (folder / "exports").mkdir(exist_ok=True)
    for day in pd.date_range(arrived.min(), END):
        seen = arrived <= day
        now = table[seen].assign(created=arrived[seen], converted=(outcome[seen] <= day).astype(int))
        now.to_parquet(folder / "exports" / f"orders-{day.date()}.parquet", index=False)


def payments(folder: Path) -> None:
    """A folder for each month, as a lakehouse writes it."""
    table = simulated(4000, 5).rename(columns={"arrived": "paid", "outcome": "chargeback", "campaign": "merchant"})
    for month, part in table.groupby(table["paid"].dt.strftime("%Y-%m")):
        (folder / "payments" / f"month={month}").mkdir(parents=True, exist_ok=True)
        part.to_parquet(folder / "payments" / f"month={month}" / "part-0.parquet", index=False)


def events(folder: Path) -> None:
    """JSON lines, with milliseconds since 1970."""
    table = simulated(4000, 6)
    for old, new in (("arrived", "ts_install"), ("outcome", "ts_purchase")):
        table[new] = ((table.pop(old) - pd.Timestamp(0)) // pd.Timedelta("1ms")).astype("Int64")
    table.to_json(folder / "events.jsonl", orient="records", lines=True)


def warehouse(folder: Path) -> None:
    try:
        import duckdb
    except ImportError:
        print("duckdb is not installed: no warehouse.duckdb")
        return
    table = simulated(4000, 7)
    table.insert(0, "visit", np.arange(len(table)))
    with duckdb.connect(str(folder / "warehouse.duckdb")) as connection:
        connection.register("arrivals", table.drop(columns="outcome"))
        connection.register("outcomes", table.loc[table["outcome"].notna(), ["visit", "outcome"]])
        connection.execute("CREATE OR REPLACE TABLE visits AS SELECT * FROM arrivals")
        connection.execute("CREATE OR REPLACE TABLE purchases AS SELECT visit, outcome AS bought_at FROM outcomes")


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for write in (bookings, clicks_and_sales, leads, daily_exports, payments, events, warehouse):
        write(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "files"))
