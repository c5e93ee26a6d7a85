"""One queue as one worker sees it: the worker's claims and heartbeat there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..info import lock_of
from ..registry import Function
from .link import Backoff, Complaints, Link, may_have_run
from .message import Message
from .store import MAX_TOKENS, Acked, Control, Haul, Store

if TYPE_CHECKING:
    from .finish import Finisher

_UNCLEAR = 600.0  # seconds after a lost reply in which the worker looks for the claims of that reply


@dataclass(eq=False, slots=True)
class Claim:
    """A task that this worker has claimed: from the reply to the claim until Redis has confirmed how it ended."""

    lane: Lane
    batch: Batch
    token: str
    raw: bytes
    size: int = 0  # of a message that is too large to be read, else 0
    message: Message = field(init=False)  # set once it is known to be for this worker, as is function
    function: Function = field(init=False)
    suspicion: int = 0  # how many deaths of the task count now
    freed: bool = False  # the lock has ended, so there is none to free
    unclear: bool = False  # Redis may have been told already how it ended
    started: float = 0.0  # monotonic
    began: int = 0  # when, by Redis's clock, ms
    limit: int = 0  # how long it may run, ms; 0: any time
    report: tuple[int, int, str] | None = None  # the last progress
    interrupt: Callable[[str], None] | None = None  # tells the running task to end
    canceled: bool = False  # its task was cancelled while it ran
    lost: bool = False  # another worker may have the task
    settled: bool = False  # Redis has answered how it ended

    @property
    def lock(self) -> str:
        """The lock of the task that must be freed when it ends, '' for none. The script that frees it also frees the
        id."""
        message: Message | None = getattr(self, 'message', None)
        return '' if self.freed or message is None else lock_of(message.meta)

    @property
    def leaves(self) -> bool:
        """Whether the task leaves something behind when it succeeds, so that an acknowledgement is not enough."""
        meta = self.message.meta
        return 'kr' in meta or 'rn' in meta or bool(self.lock) or self.report is not None or self.canceled


class Batch:
    """The tasks that one call of claim brought."""

    __slots__ = ('at', 'claims', 'number', 'open', 'suspects', 'unsent', 'version')

    def __init__(self, lane: Lane, number: int, haul: Haul, suspects: bool) -> None:
        self.number = number
        self.suspects = suspects  # whether they come from the queue's suspects
        head = f'{number}-'
        self.claims = [
            Claim(lane, self, head + str(i), raw)
            if isinstance(raw, bytes)
            else Claim(lane, self, head + str(i), b'', raw)
            for i, raw in enumerate(haul.messages, 1)
        ]
        self.at = time.monotonic()
        self.version = haul.version
        self.open = len(self.claims)  # claims that are not settled
        self.unsent = len(self.claims)  # claims whose end Redis was not told, or for which telling failed


class Lane:
    """A queue's claims. The lock of the executors protects fields whose names begin with done, mu most others."""

    finisher: Finisher

    def __init__(self, store: Store, legacy: bool) -> None:
        self.store = store
        self.name = store.name
        self.legacy = legacy
        self.done: list[Claim] = []

        self.mu = threading.Lock()
        self.batches: dict[int, Batch] = {}
        self.known = 0  # claims that are not settled
        self._next = 0  # number of the latest batch
        self._calling: list[int] = []
        self._epoch = 0  # odd while a registration is under way
        self.unclear: float | None = None  # when the reply of a claim was last lost
        self.revoked: set[str] = set()
        self.revoked_partly = False

        # The fetcher's own fields.
        self.left = 0  # pending tasks after the last claim
        self.hot = True  # whether it has tasks, as far as known
        self.mend = False  # whether its notify list seems to lack notifications
        self.suspects = False  # whether it has suspects, as far as known
        self.rest = 0.0  # no claims before this monotonic time
        self.backoff, self.complaints = Backoff(), Complaints()  # for claims that Redis refuses
        self.held_back = False  # whether it was found paused
        self.behind = False  # whether the worker was behind with telling Redis how its tasks ended
        self.waits = False  # whether it waits for that of an earlier queue, in strict order
        self.probed = 0.0

        self.parked: list[str] = []  # ids of parked tasks that this worker can run, unless another one is faster

        self.paused = False
        self.weight = 0
        self.intent = False  # there is something whose end the worker must not miss
        self.version = -1  # of the control hash when it was last read
        self.since = 0  # when the worker registered first, in ms by Redis's clock; 0: not yet
        self.control = Control()

        self.beat: Callable[[], None] = lambda: None
        self.look: Callable[[], None] = lambda: None
        self.tell_lost: Callable[[Claim], None] = lambda _: None
        self.confirmed: tuple[float, float] | None = (
            None  # when the last confirmed heartbeat was sent: monotonic and wall clock
        )
        self.refused = False  # Redis refuses to register the worker here, because a key has the wrong type
        self.pulse = ''

    def now(self) -> int:
        """Returns Redis's time in ms."""
        return self.store.now()

    def fresh(self, life: float) -> bool:
        """Returns whether the heartbeat surely has not expired in Redis.

        Both clocks must agree, because one of them stops while a machine is suspended.
        """
        confirmed = self.confirmed
        if confirmed is None or self.refused:
            return False
        limit = life * 0.8
        return time.monotonic() - confirmed[0] < limit and time.time() - confirmed[1] < limit

    def claim(
        self,
        link: Link,
        most: int,
        held: int,
        mend: bool,
        done: list[Claim],
        suspects: bool = False,
        parked: list[str] | None = None,
    ) -> tuple[Haul, list[Claim]]:
        """Claims tasks, or suspects, or parked tasks, and acknowledges the claims in done in the same call.

        Even if the call fails, its batch number is never used again.
        """
        done, ended = self.ending(done)
        with self.mu:
            self._next += 1
            number, epoch = self._next, self._epoch
            self._calling.append(number)
        try:
            if parked is None:
                haul = self.store.claim(link, number, most, held, self.legacy, mend, ended, suspects)
            else:
                haul = self.store.unpark(link, number, most, parked)
        except BaseException as e:
            with self.mu:
                self._calling.remove(number)
                if may_have_run(e):
                    self.unclear = time.monotonic()
            self.finisher.unanswered(done, e)
            raise
        self.finisher.acknowledged(done, haul.stood)
        with self.mu:
            self._calling.remove(number)
            if haul.status < 1:
                return haul, []
            if haul.version != self.version:
                self.look()
            if epoch % 2 or epoch != self._epoch:
                # The heartbeat had expired, and these claims may be older than the new registration: then a sweeper may
                # have given them to others. The next heartbeat gives back those that still exist.
                self.unclear = time.monotonic()
                self.beat()
                return haul, []
            if not haul.messages:
                return haul, []
            batch = Batch(self, number, haul, suspects)
            self.batches[number] = batch
            self.known += batch.open
        return haul, batch.claims

    def take_parked(self, n: int) -> list[str]:
        """Removes and returns the first n ids of parked tasks, or fewer."""
        with self.mu:
            taken, self.parked = self.parked[:n], self.parked[n:]
        return taken

    def put_parked(self, ids: list[str]) -> None:
        """Puts back ids that take_parked has taken."""
        with self.mu:
            self.parked = ids + self.parked

    def ending(self, done: list[Claim]) -> tuple[list[Claim], Acked]:
        """Prepares claims that are done for the call that ends them.

        It settles lost claims and leaves them out.
        """
        ended = Acked()
        if not done:
            return done, ended
        # Read the value before the marks of lost claims: claims that are not marked existed under this value.
        ended.pulse = self.pulse
        kept: list[Any] = []
        with self.mu:
            for c in done:
                if c.lost:
                    self._settle(c)
                    self.tell_lost(c)
                else:
                    kept.append(c)
                    ended.tokens.append(c.token)
            ended.batches = self._finished(kept)
        if len(kept) < len(done):
            self.finisher.count_lost(len(done) - len(kept))
        return kept, ended

    def finished(self, claims: list[Claim]) -> list[int]:
        """Notes that Redis is being told how claims ended, and returns the batches of which no other claims are left to
        tell."""
        with self.mu:
            return self._finished(claims)

    def _finished(self, claims: list[Claim]) -> list[int]:
        numbers: list[Any] = []
        for c in claims:
            b = c.batch
            b.unsent -= 1
            if b.unsent == 0:
                numbers.append(b.number)
        return numbers

    def reopen(self, claims: list[Claim]) -> None:
        """Undoes finished after a call without an answer."""
        with self.mu:
            for c in claims:
                c.batch.unsent += 1

    def settle(self, claims: list[Claim]) -> None:
        """Notes that Redis has confirmed how claims ended, or that they are lost."""
        with self.mu:
            for c in claims:
                self._settle(c)

    def _settle(self, c: Claim) -> None:
        if c.settled:
            return
        c.settled = True
        self.known -= 1
        b = c.batch
        b.open -= 1
        if b.open == 0:
            self.batches.pop(b.number, None)

    def take_done(self) -> list[Claim]:
        """Takes as many done claims as one call can tell Redis. The caller holds the lock of the executors."""
        done, self.done = self.done[:MAX_TOKENS], self.done[MAX_TOKENS:]
        return done

    def register(self) -> None:
        """Notes that a registration begins, or is over."""
        with self.mu:
            self._epoch += 1

    def open(self) -> list[Claim]:
        """Returns all claims that are not settled."""
        with self.mu:
            return [c for b in self.batches.values() for c in b.claims if not c.settled]

    def count(self) -> tuple[int, bool, bool]:
        """Returns the number of claims that are not settled, whether a claim call is under way, and whether a reply was
        lost recently."""
        with self.mu:
            unclear = self.unclear is not None and time.monotonic() - self.unclear < _UNCLEAR
            return self.known, bool(self._calling), unclear

    def lose(self, c: Claim) -> bool:
        """Marks a claim as lost and tells its task to end. Returns whether it was not already marked or settled."""
        with self.mu:
            if c.lost or c.settled:
                return False
            c.lost = True
            interrupt = c.interrupt
        if interrupt is not None:
            interrupt('lost')
        return True

    def cancel(self, c: Claim) -> None:
        """Notes that a running task was cancelled and tells it to end."""
        with self.mu:
            if c.settled or c.canceled:
                return
            c.canceled = True
            interrupt = c.interrupt
        if interrupt is not None:
            interrupt('canceled')

    def begin(self, c: Claim, interrupt: Callable[[str], None]) -> bool:
        """Notes that a task starts. False means that the claim is lost already."""
        with self.mu:
            if c.lost:
                return False
            c.interrupt = interrupt
            canceled = c.canceled
        if canceled:
            interrupt('canceled')  # it was cancelled just now
        return True

    def newest(self) -> int:
        """Returns the number of the latest batch for which it and all earlier claim calls are over."""
        with self.mu:
            return self._calling[0] - 1 if self._calling else self._next

    def strangers(self, tokens: list[str], until: int) -> list[str]:
        """Returns the tokens that this process does not know, because the replies to their claims were lost.

        It leaves out batches after until.
        """
        with self.mu:
            return [t for t in tokens if self._strange(t, until)]

    def _strange(self, token: str, until: int) -> bool:
        place = place_of(token)
        if place is None or place[0] > until:
            return False
        number, i = place
        b = self.batches.get(number)
        return b is None or not 1 <= i <= len(b.claims) or b.claims[i - 1].settled

    def is_revoked(self, id: str) -> bool:
        """Returns whether a task was cancelled, as far as known."""
        return bool(self.revoked) and id in self.revoked


def place_of(token: str) -> tuple[int, int] | None:
    """Splits a token into the number of its batch and its position in the batch, from 1."""
    head, dash, tail = token.partition('-')
    if not dash or not head.isdecimal() or not tail.isdecimal():
        return None
    return int(head), int(tail)


def order_of(token: str) -> Any:
    """Returns a key that sorts tokens in the order of their claims."""
    return place_of(token) or (0, 0)
