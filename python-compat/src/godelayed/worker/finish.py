"""Tells Redis how claims ended, in batches, and tries again until Redis answers."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..errors import DelayedError
from ..producer import MAX_CALL_BYTES
from .executors import Executors
from .lane import Claim, Lane
from .link import Backoff, Complaints, Link, RefusedError, may_have_run
from .store import MAX_SHELVED, MAX_TOKENS, Store, Verdict

logger = logging.getLogger('godelayed.worker')

# How a claim ends if it is not simply done. The kind decides which script tells Redis.
RETRY, ARCHIVE, SNOOZE, PARK, RELEASE, DEFER, FORWARD, COMPLETE, CANCEL, DEATH = range(10)
_SHELF = {RETRY: 'retry', ARCHIVE: 'archived', SNOOZE: 'scheduled', PARK: 'parked'}
_SMALL = (RETRY, ARCHIVE, SNOOZE, PARK, COMPLETE, CANCEL, DEATH)

# With so many ends of a lane that Redis has not been told, the worker claims no more there: if it died, all of these
# tasks would run again.
MAX_ENDS_WAITING = 5 * MAX_SHELVED

FAILED = ('processed', 'failed')
EXPIRED = ('expired',)


@dataclass
class End:
    """The end of a claim, of which Redis must be told."""

    claim: Claim
    kind: int
    counted: Sequence[str] = ()  # counters of the day to raise, besides that of the set
    wait: int = 0  # ms until the task is due or expires, or for which it is kept
    id: str = ''
    message: bytes = b''  # empty: the message as it was claimed
    info: bytes = b''
    certain: bool = False  # whether the task counts as cancelled, whatever Redis knows
    verdict: Verdict | None = None  # for a death

    @property
    def awaited(self) -> bool:
        """Whether a caller may wait for the end of the task."""
        message = getattr(self.claim, 'message', None)
        return self.kind in (ARCHIVE, COMPLETE, CANCEL) and message is not None and message.keep > 0

    @property
    def size(self) -> int:
        return len(self.claim.raw) + self.claim.size + len(self.info)


class Finisher:
    """The thread that tells Redis how the claims of one lane ended."""

    canceled: Callable[[Claim], End]  # makes the end of a claim whose task was cancelled
    sweep: Callable[[Link, list[Verdict]], None]  # ends claims whose processes have died

    def __init__(
        self, lane: Lane, executors: Executors, forward: Store | None, archive_max: int, archive_for: int
    ) -> None:
        self.lane = lane
        self.executors = executors
        self.forward = forward
        self.archive_max = archive_max
        self.archive_for = archive_for  # ms
        self.close_report: Callable[[Claim], None] = lambda _: None
        self.on_lost: Callable[[Claim], None] = lambda _: None
        self.link = lane.store.link()
        self.complaints = Complaints()
        self._mu = threading.Lock()
        self._pending: list[End] = []
        self._untold = 0  # ends that Redis has not confirmed, including those of a call under way
        self._lost = 0
        self._acking = 0  # done claims of an acknowledgement under way
        self.silent = False  # whether Redis has not answered the last call
        self.refused = False  # whether it has answered the last calls with an error
        self._signal = threading.Event()
        self._stop = False
        self._abandoned = threading.Event()

    def add(self, *ends: End) -> None:
        """Hands over claims that have ended. It never blocks."""
        with self._mu:
            self._pending.extend(ends)
            self._untold += len(ends)
        self._signal.set()

    @property
    def untold(self) -> int:
        """How many ends Redis has not confirmed, besides claims that are done."""
        return self._untold

    @property
    def behind(self) -> bool:
        """Whether so many ends wait that no more tasks may be claimed."""
        return self._untold >= MAX_ENDS_WAITING

    def _told(self, n: int) -> None:
        """Notes that Redis has been told of n ends."""
        with self._mu:
            was_behind = self.behind
            self._untold -= n
        if was_behind and not self.behind:
            self.executors.signal()

    def count_lost(self, n: int) -> None:
        """Adds n to the number of lost claims that Redis is told with the next ack."""
        with self._mu:
            self._lost += n
        self._signal.set()

    def wake(self) -> None:
        self._signal.set()

    def stop(self) -> None:
        """Makes the thread end once Redis has been told everything."""
        self._stop = True
        self._signal.set()

    def abandon(self) -> None:
        """Makes the thread end even if there is something left to tell."""
        self._abandoned.set()

    def waiting(self) -> int:
        """Returns how many ends of claims Redis has not confirmed, those of a call under way included."""
        with self._mu:
            n = self._untold + self._acking
        with self.executors.mu:
            return n + len(self.lane.done)

    def run(self) -> None:
        wait = Backoff()
        try:
            while True:
                self._signal.clear()
                worked, ok = self.work()
                if not ok:
                    if self._abandoned.wait(wait.next()):
                        return
                elif worked:
                    wait.reset()
                elif self._stop and not self.waiting():
                    return
                else:
                    self._signal.wait()
        finally:
            self.link.hang_up()

    def work(self) -> tuple[bool, bool]:
        """Tells Redis all ends that are waiting. The second result is False if Redis has not confirmed all of them."""
        with self._mu:
            ends, lost = self._pending, self._lost
            self._pending, self._lost = [], 0
        done = self.executors.take_done(self.lane)
        self._acking = len(done)
        if not ends and not done and not lost:
            return False, True
        self.silent = False
        ok = self._ack(done, lost)
        self._acking = 0
        left = self._flush(ends)
        if left:
            with self._mu:
                self._pending[:0] = left
            ok = False
        self.refused = not ok and not self.silent
        return True, ok

    def _ack(self, done: list[Claim], lost: int) -> bool:
        done, ended = self.lane.ending(done)
        if not done and not lost:
            return True
        try:
            stood = self.lane.store.ack(self.link, ended, lost)
        except DelayedError as e:
            self.complaints.trouble(
                logger, f'queue {self.lane.name}: cannot tell Redis how tasks ended; trying again', e
            )
            self.unanswered(done, e)
            if not may_have_run(e):
                self.count_lost(lost)
            self.silent = not isinstance(e, RefusedError)
            return False
        self.acknowledged(done, stood)
        return True

    def acknowledged(self, done: list[Claim], stood: list[int] | None) -> None:
        """Handles Redis's answer for claims that are done: stood says which of them still existed; None: all."""
        if not done:
            return
        self.complaints.relief(logger, f'queue {self.lane.name}: Redis has been told how tasks ended')
        lost = 0
        if stood is not None:
            for c, answer in zip(done, stood):
                if not answer and not c.unclear:
                    lost += 1
                    self._too_late(c)
        self.lane.settle(done)
        if lost:
            self.count_lost(lost)

    def unanswered(self, done: list[Claim], error: BaseException) -> None:
        """Puts back claims that are done but of which Redis could not be told."""
        if not done:
            return
        if may_have_run(error):
            for c in done:
                c.unclear = True
        self.lane.reopen(done)
        self.executors.put_done(self.lane, done)
        self.wake()

    def _too_late(self, c: Claim) -> None:
        self.on_lost(c)
        logger.warning(
            'queue %s: %s: the claim was lost before the task ended; another worker may run it again',
            self.lane.name,
            _name(c),
        )

    def _flush(self, ends: list[End]) -> list[End]:
        """Tells Redis how claims ended and returns those that it did not confirm.

        It makes no more calls after one that Redis did not answer: a worker that stops could not wait for all of them.
        """
        sorted_: dict[int, list[End]] = {}
        for e in ends:
            sorted_.setdefault(e.kind, []).append(e)
        left: list[End] = []
        for kind, group in sorted(sorted_.items()):
            unsent: list[list[End]] = []
            for part in _parts(kind, group):
                # Tasks that go to a list keep their order: none overtakes those of a call that has failed.
                wait = self.silent or (kind not in _SMALL and unsent)
                if part := part if wait else self._tell(kind, part):
                    unsent.append(part)
            for part in unsent[::-1] if kind == RELEASE else unsent:
                left += part
        return left

    def _tell(self, kind: int, group: list[End]) -> list[End]:
        claims = [e.claim for e in group]
        batches = self.lane.finished(claims)
        try:
            if kind not in (COMPLETE, CANCEL):
                self._forget_reports(claims)
            answers = self._call(kind, batches, group)
        except DelayedError as error:
            self.complaints.trouble(
                logger, f'queue {self.lane.name}: cannot tell Redis how tasks ended; trying again', error
            )
            self.lane.reopen(claims)
            if may_have_run(error):
                for c in claims:
                    c.unclear = True
            self.silent = not isinstance(error, RefusedError)
            return group
        self.complaints.relief(logger, f'queue {self.lane.name}: Redis has been told how tasks ended')
        self._told(len(group))
        lost = 0
        for e, answer in zip(group, answers):
            if answer == 2:
                self._again(e)
                continue
            self.lane.settle([e.claim])
            if not answer and not e.claim.unclear and kind not in (RELEASE, DEFER, DEATH):
                lost += 1
                self._too_late(e.claim)
            if kind == FORWARD and answer and e.claim.lock:
                self._disown(e.claim)
        if lost:
            self.count_lost(lost)
        return []

    def _call(self, kind: int, batches: list[int], group: list[End]) -> list[int]:
        store, link = self.lane.store, self.link
        tokens = [e.claim.token for e in group]
        if kind in _SHELF:
            shelf = _SHELF[kind]
            counter = {'retry': 'retried', 'scheduled': 'snoozed'}.get(shelf, shelf)
            for e in group:
                if kind == ARCHIVE:
                    e.wait = self.archive_for
            most = self.archive_max if kind == ARCHIVE else 0
            return store.shelve(link, batches, shelf, most, [*group[0].counted, counter], group)
        if kind in (COMPLETE, CANCEL):
            return store.complete(link, batches, group, kind == CANCEL)
        if kind == DEATH:
            # As for the claims of a dead worker, the script compares the claim and its bytes. A claim that still
            # exists after that was not ours.
            self.sweep(link, [e.verdict for e in group if e.verdict is not None])
            if batches:
                self.lane.store.release(link, batches, [])
            return [1] * len(group)
        if kind == FORWARD:
            return store.release(link, batches, tokens, self.forward, front=False)
        return store.release(link, batches, tokens, front=kind == RELEASE, suspects=kind == DEFER)

    def _forget_reports(self, claims: list[Claim]) -> None:
        """Makes Redis forget the progress of tasks that do not succeed. This comes first, or the progress would remain
        after the task."""
        for c in claims:
            if c.report is not None:
                self.close_report(c)
                self.lane.store.progress(self.link, c.token, c.message.id, b'')

    def _again(self, e: End) -> None:
        """Ends a claim in another way than intended, because Redis answered that its task was cancelled, or that it was
        not."""
        self.lane.reopen([e.claim])
        if e.kind == CANCEL:
            with self.lane.mu:
                self.lane.revoked.discard(e.claim.message.id)
            e.claim.canceled = False
            self.add(End(e.claim, RELEASE))
        else:
            self.add(self.canceled(e.claim))

    def _disown(self, c: Claim) -> None:
        try:
            self.lane.store.unlock(self.link, c.message.id, c.lock, left=True)
        except DelayedError as e:
            logger.warning(
                'queue %s: the lock of %s, handed on, lasts until it lapses: %s', self.lane.name, _name(c), e
            )


def _name(c: Claim) -> str:
    message = getattr(c, 'message', None)
    return f'{message.path} ({message.id or "no id"})' if message is not None else c.token


def _fitting(group: Sequence[End], size: int) -> int:
    """Returns how many ends go into one call, so that the call neither blocks Redis for long nor takes longer than its
    timeout."""
    total = n = 0
    for e in group[:size]:
        total += e.size
        if n and total > MAX_CALL_BYTES:
            break
        n += 1
    return n


def _parts(kind: int, ends: Sequence[End]) -> Iterator[list[End]]:
    """Divides ends of one kind into those of one call each, in the order in which the calls must be made."""
    size = MAX_SHELVED if kind in _SMALL else MAX_TOKENS
    while ends:
        if kind == RELEASE:  # the last ones first, because each call puts its tasks in front of all others
            n = len(ends) - _fitting(ends[::-1], size)
            yield list(ends[n:])
            ends = ends[:n]
        else:
            n = _alike(ends[: _fitting(ends, size)])
            yield list(ends[:n])
            ends = ends[n:]


def _alike(group: Sequence[End]) -> int:
    """Returns how many of the first ends raise the same counters, so that they can share a call."""
    n = 1
    while n < len(group) and group[n].counted == group[0].counted:
        n += 1
    return n
