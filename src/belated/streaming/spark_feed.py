"""SparkFeed: a query of Spark Structured Streaming as the source of a stream, exactly once.

Spark gives each micro-batch a number, and after a restart the same batch under the same number. The number is kept in one file with all that was learned, so a
batch that had been learned when the program was killed is passed over, and one that had not is learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from belated.features.field_matrix import FieldMatrix
from belated.notices import logger
from belated.streaming.online_classifier import OnlineClassifier


class SparkFeed:
    """Give it to ``foreachBatch``.

    Each row of the query is an event: an arrival with its features, or an outcome. Rows come to the driver, which learns them; they are those of one batch.

    Parameters
    ----------
    classifier : OnlineClassifier
    checkpoint : path
        A file beside Spark's own ``checkpointLocation``, which must live as long as that does.
    key, time : str
        Columns by which an outcome finds its arrival, and when the event was.
    kind : str
        A column that is ``"arrival"`` or ``"outcome"``.
    features : sequence of str
        Hashed into ``columns`` columns.
    tolerance : duration, optional
        How long events may be late, on the clock of events; see :class:`belated.Stream`.

    Examples
    --------
    ``events.writeStream.foreachBatch(feed).option("checkpointLocation", "state/spark").start()``
    """

    def __init__(
        self,
        classifier: OnlineClassifier,
        checkpoint: str | Path,
        *,
        key: str,
        time: str,
        kind: str,
        features: Sequence[str],
        columns: int = 2**20,
        tolerance: Any = None,
    ) -> None:
        self.classifier = classifier
        self.checkpoint = Path(checkpoint)
        self.key, self.time, self.kind = key, time, kind
        self.features, self.columns = list(features), columns
        self.stream = classifier.stream(tolerance)
        position = classifier.restore(self.checkpoint, self.stream)
        self.batch = -1 if position is None else int(position["batch"])
        if position is not None:
            logger.info("going on after batch %d", self.batch)

    def __call__(self, frame: Any, number: int) -> None:
        """Learn a batch, unless it has been learned."""
        if number <= self.batch:
            logger.info("batch %d had been learned before", number)
            return
        wanted = frame.select(self.key, self.time, self.kind, *self.features)
        self.learn(wanted.toArrow())
        self.batch = number
        self.classifier.checkpoint(self.checkpoint, self.stream, {"batch": number})

    def learn(self, events: pa.Table) -> None:
        """Learn some events, in the order of their times, whatever order they come in."""
        if not len(events):
            return
        names = set(pc.unique(events[self.kind]).to_pylist())
        if names - {"arrival", "outcome"}:
            raise ValueError(
                f"column {self.kind!r} must be 'arrival' or 'outcome', and holds {sorted(map(str, names - {'arrival', 'outcome'}))[0]!r} too."
            )
        # Batches have no order of their own: the same events always come in the same one.
        events = events.sort_by([(self.time, "ascending"), (self.kind, "ascending"), (self.key, "ascending")])
        came = events.filter(pc.equal(events[self.kind], "arrival"))
        turned = events.filter(pc.equal(events[self.kind], "outcome"))
        if len(came):
            fields = FieldMatrix.from_frame(came.select(self.features), self.columns)
            self.stream.arrive(came[self.key], fields, came[self.time])
        if len(turned):
            self.stream.outcome(turned[self.key], turned[self.time])
        self.stream.advance(events[self.time][-1].as_py())
        self.classifier.learn(self.stream)
