"""Sends reports of progress to Redis: the latest of each task, at most ten a second."""

from __future__ import annotations

import logging
import threading
import time

from ..errors import DelayedError
from . import info
from .lane import Claim
from .link import Link

logger = logging.getLogger('godelayed.worker')

_EVERY = 0.1  # least seconds between two reports of one task


class Reporter:
    """The thread that sends reports. It starts with the first report."""

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._mu = threading.Condition()
        self._late: dict[Claim, float] = {}  # claims whose last report was not sent, and when it may be
        self._sent: dict[Claim, float] = {}
        self._sending: object = None
        self._thread: object = None
        self._links: dict[object, Link] = {}
        self._stop = False

    def report(self, c: Claim, done: int, total: int, note: str) -> None:
        """Takes a report to send. It never blocks for long."""
        if not c.message.id:
            return
        with self._mu:
            if c.settled:
                return
            c.report = (done, total, note)
            if self._thread is None:
                thread = threading.Thread(target=self._run, name='godelayed-report', daemon=True)
                self._thread = thread
                thread.start()
            self._late[c] = self._sent.get(c, 0.0) + _EVERY
            self._mu.notify_all()

    def close(self, c: Claim) -> None:
        """Ends reporting for a task that is over: after this, nothing is sent for it."""
        with self._mu:
            self._late.pop(c, None)
            self._sent.pop(c, None)
            while self._sending is c:
                self._mu.wait()

    def stop(self) -> None:
        with self._mu:
            self._stop = True
            self._mu.notify_all()

    def _run(self) -> None:
        while True:
            with self._mu:
                self._sending = None
                self._mu.notify_all()
                if self._stop:
                    break
                if not self._late:
                    self._mu.wait()
                    continue
                c, at = min(self._late.items(), key=lambda item: item[1])
                now = time.monotonic()
                if at > now:
                    self._mu.wait(at - now)
                    continue
                del self._late[c]
                self._sending, self._sent[c] = c, now
                report = c.report or (0, 0, '')
            self._send(c, report)
        for link in self._links.values():
            link.hang_up()

    def _send(self, c: Claim, report: tuple[int, int, str]) -> None:
        lane, m = c.lane, c.message
        link = self._links.get(lane)
        if link is None:
            link = self._links[lane] = lane.store.link()
        done, total, note = report
        fields = info.encode(
            reason='active',
            at=lane.now(),
            enqueued=m.meta.get('at'),
            function=m.path,
            worker=self._worker,
            attempts=m.retried,
            deaths=m.deaths,
            done=done,
            total=total,
            note=note,
        )
        try:
            lane.store.progress(link, c.token, m.id, fields)
        except DelayedError as e:
            logger.debug('queue %s: %s (%s): a report of progress did not reach Redis: %s', lane.name, m.path, m.id, e)
