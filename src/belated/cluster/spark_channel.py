"""A direct line to Spark's executors: one job whose tasks stay, and answer as often as they are asked.

To start a job takes Spark a tenth of a second, and a fit asks hundreds of times. While the line is open its tasks hold their cores; it is closed
once nobody has asked for a while, and other jobs of the session go on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener
from queue import Empty, Queue
from secrets import token_bytes
from typing import Any

from pyspark import InheritableThread, SparkContext, cloudpickle

Answer = Callable[[list[Any], bytes], Any]  # what a worker has to say to a request, given its elements
_TO_CONNECT = 10.0  # seconds
_IDLE = 2.0  # seconds after which the cores are given back
MOST = 64  # tasks: beyond, sending to one after the other takes longer than Spark's own broadcast


class ChannelError(Exception):
    """The line broke, or could not be opened. What was asked has had no effect."""


class Channel:
    """Tasks that hold the elements of an RDD, ``slots`` of them, as many as there are cores. ``opened`` makes what answers, in each."""

    def __init__(self, context: SparkContext, rdd: Any, slots: int, opened: Callable[[], Answer]) -> None:
        conf, key = context.getConf(), token_bytes(32)
        host = conf.get("spark.driver.host", "127.0.0.1")
        self._listener = Listener((conf.get("spark.driver.bindAddress", host), 0), backlog=slots, authkey=key)
        self._lines: list[Connection] = []
        self._lock = threading.RLock()
        self._timer: threading.Timer | None = None
        address = host, self._listener.address[1]

        def serve(elements: Iterator[Any]) -> Iterator[Any]:
            _serve(list(elements), address, key, opened())
            return iter(())

        found: Queue[Connection] = Queue()
        threading.Thread(target=self._accept, args=(found, slots), daemon=True).start()
        self._job = InheritableThread(target=_run, args=(rdd.coalesce(slots).mapPartitions(serve),), daemon=True)
        self._job.start()
        try:
            for _ in range(slots):
                self._lines.append(found.get(timeout=_TO_CONNECT))
        except Empty:
            self.close()
            raise ChannelError(f"only {len(self._lines)} of {slots} tasks have started") from None

    def _accept(self, found: Queue[Connection], slots: int) -> None:
        with suppress(OSError, EOFError):
            for _ in range(slots):
                found.put(self._listener.accept())

    def ask(self, request: bytes) -> list[Any]:
        """The answer of every task."""
        with self._lock:
            if not self._lines:
                raise ChannelError("closed")
            if self._timer is not None:
                self._timer.cancel()
            try:
                for line in self._lines:
                    line.send_bytes(request)
                answers = [cloudpickle.loads(line.recv_bytes()) for line in self._lines]
            except (OSError, EOFError) as error:
                self.close()
                raise ChannelError(str(error)) from None
            except (
                BaseException
            ):  # an interrupt: the answers still to come would be taken for those to the next request
                self.close()
                raise
            self._timer = threading.Timer(_IDLE, self.close)
            self._timer.daemon = True
            self._timer.start()
        for good, answer in answers:
            if not good:
                raise answer
        return [answer for _, answer in answers]

    @property
    def open(self) -> bool:
        return bool(self._lines)

    def close(self) -> None:
        """Let the tasks end."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            for line in self._lines:
                line.close()
            self._lines = []
            self._listener.close()
        if threading.current_thread() is not self._timer:
            self._job.join(_TO_CONNECT)


def _run(rdd: Any) -> None:
    with suppress(Exception):  # lost executors, a session that was stopped: whoever asks finds the line broken
        rdd.count()


# In a worker.


def _serve(elements: list[Any], address: tuple[str, int], key: bytes, answer: Answer) -> None:
    with suppress(OSError, EOFError):  # the driver has closed the line
        line = Client(address, authkey=key)
        while True:
            request = line.recv_bytes()
            try:
                reply = True, answer(elements, request)
            except Exception as error:
                reply = False, error
            line.send_bytes(cloudpickle.dumps(reply))
