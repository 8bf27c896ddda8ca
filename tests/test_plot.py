"""Pictures outside reports: the habits of scikit-learn's displays, whatever is drawn."""

from __future__ import annotations

import subprocess
import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pytest
from matplotlib.axes import Axes

import belated
from belated import EventLog, LinearModel, diagnose, plot
from belated.datasets import simulate_campaigns, simulate_scores
from belated.extras import how_to_install

FORMULA = "$\\frac$"  # as a formula, it cannot be read


@pytest.fixture(autouse=True)
def no_figures_left():
    assert plt.get_fignums() == []
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def log():
    frame = simulate_campaigns(4000).to_pandas()[["click_time", "conversion_time", "campaign", "device"]]
    frame["campaign"] = frame["campaign"].replace({"campaign 01": FORMULA})
    return EventLog.from_frame(frame, arrival="click_time", outcome="conversion_time", until="2024-03-01")


@pytest.fixture(scope="module")
def result(log):
    few = log.without_features("campaign")
    return belated.backtest(
        few, horizon="10d", methods=["tw", "rescale"], cutoffs=3, model=LinearModel(l2=1e-3), n_jobs=1, progress=False
    )


@pytest.fixture(scope="module")
def found(log):
    return belated.forecast(log, horizon="10d", method="chain-ladder", group="campaign", cutoffs=3)


@pytest.fixture(scope="module")
def monitored():
    scores, outcomes = simulate_scores(20_000)
    frame = scores.to_pandas()
    frame["segment"] = frame["segment"].replace({"mail": FORMULA})
    columns = {"key": "id", "time": "scored_at", "score": "p", "outcome": "converted_at", "horizon": "30d"}
    return belated.monitor(frame, outcomes.to_pandas(), **columns, by="segment", version="version")


@pytest.fixture(scope="module")
def experiment():
    rng = np.random.default_rng(0)
    start, converts = rng.uniform(0, 40 * 86400, 20_000), rng.random(20_000) < 0.2
    outcome = pa.array(start + rng.exponential(3 * 86400, 20_000), mask=~converts)
    arms = np.array(["a", FORMULA])[rng.integers(0, 2, 20_000)]
    visits = pa.table({"time": start, "arm": arms.tolist(), "converted": outcome})
    log = EventLog.from_frame(visits, arrival="time", outcome="converted")
    return belated.lift(log, treatment="arm", control="a", horizon="14d", as_of=40 * 86400)


CASES = [
    ("delay_curve", "log", {"horizon": "10d"}),
    ("maturity", "log", {"horizon": "10d"}),
    ("calibration", "result", {}),
    ("calibration", "result", {"method": "tw"}),
    ("calibration", "result", {"method": ["tw", "rescale"]}),
    ("method_table", "result", {}),
    *(("forecast", "found", {"what": what}) for what in ("cumulated", "by_outcome", "by_arrival", "by_group", "past")),
    *(
        ("monitor", "monitored", {"metric": metric})
        for metric in ("calibration", "oe", "rate", "log_loss", "auc", "brier", "delay", "same_age")
    ),
    *(("monitor", "monitored", {"metric": metric}) for metric in ("share_in", "segments", "check")),
    ("lift", "experiment", {}),
]
NAMES = ["-".join([name, *map(str, more.values())]) for name, _, more in CASES]


@pytest.mark.parametrize(("name", "what", "more"), CASES, ids=NAMES)
def test_habits_of_displays(name, what, more, request, monkeypatch):
    """A new figure only where no axes are given; the axes are returned, labelled, with a legend, and nothing is shown."""
    monkeypatch.setattr(plt, "show", lambda *_, **__: pytest.fail("shown"))
    drawn, given = getattr(plot, name), request.getfixturevalue(what)
    axes = drawn(given, **more)
    assert isinstance(axes, Axes) and len(plt.get_fignums()) == 1
    assert axes.get_xlabel() and (axes.get_ylabel() or len(axes.get_yticklabels()))
    assert name == "method_table" or len(axes.get_legend().get_texts()) >= 1  # its names are on the axis
    axes.figure.canvas.draw()  # a name that is no formula would fail here
    figure, two = plt.subplots(1, 2)
    assert drawn(given, ax=two[1], **more) is two[1]
    assert not two[0].has_data() and plt.get_fignums() == [1, figure.number]


@pytest.mark.parametrize(("name", "what", "more"), CASES, ids=NAMES)
def test_style_goes_to_the_main_artist(name, what, more, request):
    """Short names do, too."""
    axes = getattr(plot, name)(request.getfixturevalue(what), c="#123456", **more)
    colours = {
        matplotlib.colors.to_hex(colour)
        for artist in (*axes.lines, *axes.patches)
        for colour in (getattr(artist, "get_color", artist.get_edgecolor if artist in axes.patches else None)(),)
    } | {matplotlib.colors.to_hex(patch.get_facecolor()) for patch in axes.patches}
    assert "#123456" in colours


def test_a_summary_will_do(log, result, found, monitored):
    diagnosis = diagnose(log, horizon="10d")
    assert plot.delay_curve(diagnosis.summary()).get_xlim() == plot.delay_curve(log, horizon="10d").get_xlim()
    assert plot.maturity(diagnosis).get_ylim() == plot.maturity(diagnosis.summary()).get_ylim()
    assert plot.forecast(found.summary()).get_ylim() == plot.forecast(found).get_ylim()
    assert plot.monitor(monitored.summary()).get_ylim() == plot.monitor(monitored).get_ylim()
    assert plot.method_table(result.summary()).get_xlim() == plot.method_table(result).get_xlim()
    assert plot.calibration(result.summary()).get_xlim() == plot.calibration(result).get_xlim()


def test_methods_are_in_order_of_their_loss(result):
    names = [text.get_text() for text in plot.method_table(result).get_yticklabels()]
    losses = {name: row["log_loss"] for name, row in result.summary()["methods"].items()}
    assert names == sorted(losses, key=losses.get)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda r, f, m: plot.calibration(r, method="tv"),
            r"method='tv' is not in this backtest; there are bl, oracle",
        ),
        (lambda r, f, m: plot.forecast(f, what="all"), r"what='all' is not known; choose one of cumulated, by_outcome"),
        (lambda r, f, m: plot.monitor(m, metric="f1"), r"metric='f1' is not known; choose one of calibration, oe"),
        (lambda r, f, m: plot.forecast({**f, "by_group": []}, what="by_group"), "this forecast has no group"),
        (lambda r, f, m: plot.forecast({**f, "past": []}, what="past"), "this forecast has no dates of the past"),
        (lambda r, f, m: plot.monitor({**m, "segments": []}, metric="segments"), "say by= which"),
    ],
)
def test_what_is_not_there_is_refused(call, message, result, found, monitored):
    with pytest.raises(ValueError, match=message):
        call(result, found.summary(), monitored.summary())
    assert plt.get_fignums() == []  # and leaves no empty figure behind


def test_without_matplotlib_it_says_how_to_get_it():
    code = "import sys; sys.modules['matplotlib'] = None; import belated; belated.plot.forecast({})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "MissingExtra: this needs matplotlib" in done.stderr and how_to_install("report") in done.stderr


def test_it_is_there_without_being_imported():
    assert belated.plot is plot
