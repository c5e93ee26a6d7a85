"""The start and the end of a task's run: whether it may start, and what happens to it when its call has ended or its
process has died."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from ..errors import DelayedError
from .finish import ARCHIVE, RELEASE, SNOOZE, End
from .judge import Ended, Judge
from .lane import Claim
from .report import Reporter

logger = logging.getLogger('godelayed.worker')


class Runs:
    """What the pool or the threads ask before each run and report after it."""

    def __init__(
        self,
        judge: Judge,
        reporter: Reporter,
        count: Callable[[Claim, bool, bool], None] = lambda _, __, ___: None,
        tell: Callable[..., None] = lambda *_, **__: None,
    ) -> None:
        self._judge = judge
        self._reporter = reporter
        self._count = count
        self._tell = tell  # those who watch: the kinds of events, the claim, and more
        self._shutting = self._leaving = False

    def leave(self) -> None:
        """Notes that the worker stops.

        From now on deaths of processes do not count, because the processes may have been told to end too.
        """
        self._leaving = True

    def shut(self) -> None:
        """Notes that tasks are told to end because the worker stops: those that obey are given back, without counting
        as a try or a death."""
        self._shutting = True

    def begin(self, c: Claim, interrupt: Callable[[str], None], go: Callable[[bool], None]) -> None:
        """Prepares a task for the pool and calls go with whether it may start, at once or when Redis has answered."""
        if c.message.meta.get('us'):
            threading.Thread(target=lambda: go(self.prepare(c, interrupt)), daemon=True).start()
        else:
            go(self.prepare(c, interrupt))

    def prepare(self, c: Claim, interrupt: Callable[[str], None]) -> bool:
        """Returns whether a task may start now; if not, prepare has already ended its claim."""
        lane, m = c.lane, c.message
        meta = m.meta
        if meta:
            if lane.revoked and lane.is_revoked(m.id):
                self._cancel(c)
                return False
            now = lane.now()
            stale = self._judge.stale(c, now)
            if stale is not None:
                lane.finisher.add(stale)
                self._tell(['task expired'], c)
                return False
            if meta.get('us') and not self._unlock(c):
                self._cancel(c)
                return False
            c.began = now
            c.limit = self._judge.limit(c, now)
        else:
            c.limit = c.function.timeout or self._judge.rules.timeout
        if not lane.begin(c, interrupt):
            lane.settle([c])
            lane.finisher.count_lost(1)
            return False
        since = max(meta.get('at', 0), meta.get('du', 0))
        self._tell(['task started'], c, wait=max(lane.now() - since, 0) if since else 0)
        return True

    def _unlock(self, c: Claim) -> bool:
        """Frees the lock of a task that starts, and returns whether the task may start.

        If Redis does not answer, the lock ends with the task.
        """
        link = c.lane.store.link()
        try:
            left = c.lane.store.unlock(link, c.message.id, c.lock, left=False)
        except DelayedError as e:
            logger.warning(
                'queue %s: the lock of %s could not be freed before it starts: %s', c.lane.name, c.message.id, e
            )
            return True
        finally:
            link.hang_up()
        c.freed = left == 0
        return left >= 0

    def conclude(self, c: Claim, ended: Ended) -> bool:
        """Decides what happens to a task whose call has ended. Returns True if it is done and must be acknowledged."""
        lane = c.lane
        self._close_report(c)
        if c.lost:
            self._count(c, False, False)
            self._tell(['task lost'], c, took=_took(c))
            lane.settle([c])
            logger.warning(
                'queue %s: %s ended after its claim was lost; its outcome is discarded', lane.name, c.message.path
            )
            lane.finisher.count_lost(1)
            return False
        if ended.ok:
            self._count(c, False, False)
            self._tell(['task done'], c, took=_took(c))
            if not c.leaves:
                return True
            lane.finisher.add(self._judge.complete(c, ended, c.began))
            return False
        if c.canceled:
            self._count(c, False, False)
            self._cancel(c, certain=True, took=_took(c))
            return False
        if ended.interrupted == 'timeout':
            ended.error = f'it took longer than {c.limit / 1000:g} s: {ended.error}'
        try:
            end = self._judge.failed(c, ended, self._shutting)
        except Exception:
            logger.exception('queue %s: %s: cannot say what becomes of it; it is given back', lane.name, c.message.path)
            end = End(c, RELEASE)
        if end is None or end.kind != SNOOZE:  # what was turned away has not run: it would shorten the mean run
            self._count(c, end is not None and 'failed' in end.counted, end is not None and end.kind == ARCHIVE)
        self._tell(_kinds(ended, end), c, took=_took(c), wait=end.wait if end else 0, error=ended.error)
        if end is None:
            return True
        lane.finisher.add(end)
        return False

    def died(self, c: Claim, alone: bool) -> None:
        """Ends the claim of a task whose process died by itself. alone: no other processes died at the same time."""
        lane = c.lane
        self._close_report(c)
        if c.lost:
            self._tell(['task lost'], c, took=_took(c))
            lane.settle([c])
            lane.finisher.count_lost(1)
        elif c.canceled:
            self._cancel(c, certain=True, took=_took(c))
        elif self._leaving:
            self._tell(['task released'], c, took=_took(c))
            lane.finisher.add(End(c, RELEASE))
        else:
            end = self._judge.death(c, alone)
            archived = end.verdict is not None and end.verdict.action == 'archive'
            kind = 'task archived' if archived else 'task released'
            self._tell([kind], c, took=_took(c), reason='deaths')
            lane.finisher.add(end)

    def _cancel(self, c: Claim, certain: bool = False, **more: int) -> None:
        """Ends the claim of a task that was cancelled. certain: it was told so while it ran."""
        self._tell(['task canceled'], c, **more)
        c.lane.finisher.add(self._judge.cancellation(c, certain=certain))

    def _close_report(self, c: Claim) -> None:
        if c.report is not None:
            self._reporter.close(c)


def _took(c: Claim) -> int:
    """Returns how long a task has run, in µs."""
    return int((time.monotonic() - c.started) * 1_000_000)


def _kinds(ended: Ended, end: End | None) -> list[str]:
    """Returns the events of a task that has raised."""
    if end is None or ended.says == 'drop':
        return ['task dropped']
    if end.kind == RELEASE:
        return ['task released']
    if end.kind == SNOOZE:
        return ['task snoozed']
    kinds = ['task timed out'] if ended.interrupted == 'timeout' else []
    return [*kinds, 'task failed', 'task archived' if end.kind == ARCHIVE else 'task retried']
