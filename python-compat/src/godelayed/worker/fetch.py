"""Decides when to claim and from which queue; blocks on the notify lists while there is nothing."""

from __future__ import annotations

import logging
import queue
import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import DelayedError
from .executors import Executors
from .finish import RELEASE
from .intake import Intake
from .lane import Claim, Lane
from .lines import Lines
from .link import Backoff, Complaints, Link, RefusedError, WrongTypeError
from .slot import check
from .store import MAX_UNPARKED
from .suspects import Suspects

logger = logging.getLogger('godelayed.worker')

WAIT_TIME = 5  # seconds that one BLPOP blocks
RIDE_TIME = 0.002  # longest time that done claims wait for the next claim, in seconds
PROBE_INTERVAL = 0.01  # seconds between two looks at a queue that was empty, while others have tasks
PAUSED_REST = 0.02


class Waiter:
    """The thread that blocks on the notify lists of one slot, on a connection of its own."""

    def __init__(
        self, lanes: Sequence[Lane], tell: Callable[[Waiter, bytes | None, DelayedError | None], None]
    ) -> None:
        self.lanes = lanes
        self.tell = tell
        first = lanes[0].store
        # The connection's timeout is longer than the wait in Redis, or a slow answer could lose the notification in it.
        self.link = Link(first.source, WAIT_TIME + 5.0)
        self.claims = first.link()  # for the fetcher
        self.noti = {lane.store.keys.noti.encode(): lane for lane in lanes}
        self.suspects_noti = {lane.store.keys.suspects_noti.encode(): lane for lane in lanes}
        self.rewait = first.keys.rewait + first.worker  # a value here ends the wait of this worker alone
        self.blocking = False
        self.on: list[Lane] = []  # the lanes on whose notify lists it blocks
        self.renewed = False  # whether it was told to end its wait, because there are more lanes to block on
        self.until = 0.0  # no claims before this time, because the server is unreachable
        self.backoff, self.claims_backoff = Backoff(), Backoff()  # for waits and for claims
        self.refused = -Complaints.INTERVAL  # when Redis last answered a wait with an error
        self._arm: queue.SimpleQueue[list[str] | None] = queue.SimpleQueue()

    def arm(self, lanes: list[Lane], suspects: bool) -> None:
        """Makes the thread block on the notify lists of lanes, and on those of their suspects if suspects is set."""
        self.blocking, self.on, self.renewed = True, lanes, False
        keys = [lane.store.keys.noti for lane in lanes]
        keys += [lane.store.keys.suspects_noti for lane in lanes if suspects]
        self._arm.put([*keys, *(lane.store.keys.wake for lane in self.lanes), self.rewait])

    def renew(self, lanes: list[Lane]) -> None:
        """Ends a wait that leaves out one of these lanes, because tasks of that lane would have to wait for its end."""
        if not self.renewed and any(lane not in self.on for lane in lanes):
            self.lanes[0].store.rewait(self.claims, 2000 * WAIT_TIME)
            self.renewed = True

    def failed(self, error: DelayedError, now: float) -> None:
        """Notes that a wait has failed: the worker claims nothing before the back-off is over."""
        self.until = now + self.backoff.next()
        if isinstance(error, RefusedError):
            self.refused = now

    def recovered(self, key: bytes | None, now: float) -> bool:
        """Returns whether a wait that succeeded shows that the next one will succeed.

        After an error answer of Redis, such as for a key of the wrong type, a wait that brought a notification does not
        show it: Redis did not look at the keys after that one.
        """
        return key is None or key == self.rewait.encode() or now - self.refused > Complaints.INTERVAL

    def stop(self) -> None:
        self._arm.put(None)
        self.link.cut()

    def run(self) -> None:
        while True:
            keys = self._arm.get()
            if keys is None:
                break
            try:
                reply = self.link.do('BLPOP', *keys, WAIT_TIME)
                self.tell(self, reply[0] if reply else None, None)
            except DelayedError as e:
                self.link.hang_up()
                self.tell(self, None, e)
        self.link.hang_up()


class Fetcher:
    """The thread that claims tasks for the free executors."""

    def __init__(
        self,
        lanes: Sequence[Lane],
        weights: Sequence[int] | None,
        groups: Sequence[Sequence[Lane]],
        executors: Executors,
        life: float,
        room: Callable[[], tuple[int, float]],
        intake: Intake,
        claims_at_all: Callable[[], bool],
        on_due: Callable[[], None],
        lines: Lines,
    ) -> None:
        self.lanes = lanes
        self.weights = weights
        self.executors = executors
        self.life = life
        self._room = room
        self._receive = intake.receive
        self.claims_at_all = claims_at_all
        self._on_due = on_due
        self.waiters = [Waiter(group, self._woken) for group in groups]
        self._of = {lane: w for w in self.waiters for lane in w.lanes}
        self._events: queue.SimpleQueue[tuple[Waiter, bytes | None, DelayedError | None] | None] = queue.SimpleQueue()
        self._signaled = False
        self.suspects = Suspects(self, intake)
        self._nudged: set[Lane] = set()
        self._mu = threading.Lock()
        self._serving = False
        self._stop = False
        self.complaints = Complaints()  # about claims
        self.waits = Complaints()
        self._lines = lines  # about parked tasks that were claimed

    def signal(self) -> None:
        """Makes the fetcher look for tasks again. It never blocks."""
        if not self._signaled:
            self._signaled = True
            self._events.put(None)

    def nudge(self, lane: Lane, suspects: bool = False) -> None:
        """Tells the fetcher that a queue has pending tasks, or suspects, whether or not it has notifications."""
        if suspects:
            lane.suspects = True
        else:
            with self._mu:
                self._nudged.add(lane)
        self.signal()

    def stop(self) -> None:
        self._stop = True
        for w in self.waiters:
            w.stop()
        self.signal()

    def _woken(self, w: Waiter, key: bytes | None, error: DelayedError | None) -> None:
        self._events.put((w, key, error))

    def run(self) -> None:
        self.suspects.open()
        while not self._stop:
            self._look_behind()
            room, pause = self._room()
            if self.suspects.lone is not None:
                self.suspects.handle_lone()
                continue
            if room > 0 and self.suspects.claim_any():
                self.block(0.0)
                continue
            if room > 0:
                hot, later = self.any_hot()
                if hot:
                    self._round(room)
                    self.block(0.0)
                    continue
                self.leave_off()
                self._arm()
                if pause > 0 and (later == 0 or pause < later):
                    later = pause
                self.block(later or None)
                continue
            if self._serving and (pause == 0 or pause > RIDE_TIME):
                if self.block(RIDE_TIME):
                    self.leave_off()
                continue
            self.leave_off()
            self.block(pause or None)
        self.suspects.dismiss(RELEASE)
        self.executors.retire()
        self.mend_after_stop()

    def leave_off(self) -> None:
        self.executors.leave_off()
        self._serving = False

    def _look_behind(self) -> None:
        """Looks whether the worker is behind with telling Redis how tasks of a queue ended.

        In strict order it claims nothing from later queues then, because that queue may have tasks; but it does if
        Redis does not answer for it, or refuses to be told.
        """
        wait, now = False, time.monotonic()
        for lane in self.lanes:
            lane.behind, lane.waits = lane.finisher.behind, wait
            if lane.behind and self.weights is None and not lane.finisher.refused:
                wait = wait or (lane.fresh(self.life) and now >= self._not_before(lane))

    def _paused(self, lane: Lane) -> bool:
        """Returns whether nothing may be claimed from a queue: it is paused, or the worker is behind with its ends.

        After that the queue is looked at again, because nobody has waited for its notifications meanwhile.
        """
        if lane.waits:
            return True
        if lane.paused or lane.behind:
            lane.held_back = True
        elif lane.held_back:
            lane.held_back, lane.hot = False, True
        return lane.held_back

    def may_claim(self, lane: Lane) -> bool:
        """Returns whether the fetcher may claim from a queue now."""
        return not self._paused(lane) and time.monotonic() >= self._not_before(lane) and self._fresh(lane)

    def _fresh(self, lane: Lane) -> bool:
        """Returns whether heartbeats allow claims from a queue.

        The queues of a slot register one after another, so that late heartbeats would leave only the later ones fresh
        for a moment. The first one counts too, unless Redis refuses it, or they would overtake it.
        """
        first = next((other for other in self._of[lane].lanes if not other.refused), lane)
        return lane.fresh(self.life) and first.fresh(self.life)

    def link_of(self, lane: Lane) -> Link:
        """Returns the link for claims from a queue."""
        return self._of[lane].claims

    def _not_before(self, lane: Lane) -> float:
        return max(lane.rest, self._of[lane].until)

    def any_hot(self) -> tuple[bool, float]:
        """Returns whether there is a queue to claim from now; if not, in how many seconds there may be one, 0 if
        unknown."""
        now, later = time.monotonic(), 0.0
        for lane in self.lanes:
            if self._paused(lane) or not (lane.hot or lane.parked):
                continue
            wait = self._not_before(lane) - now
            if wait <= 0 and self._fresh(lane):
                return True, 0.0
            if wait > 0 and (later == 0 or wait < later):
                later = wait
        for w in self.waiters:
            wait = w.until - now
            if wait > 0 and (later == 0 or wait < later):
                later = wait
        wait = self.suspects.rest - now
        if wait > 0 and (later == 0 or wait < later) and any(lane.suspects for lane in self.lanes):
            later = wait
        return False, later

    def _arranged(self) -> Sequence[Lane]:
        """Returns the queues in the order of one round."""
        if self.weights is None or len(self.lanes) == 1:
            return self.lanes
        left = [(lane, lane.weight or weight) for lane, weight in zip(self.lanes, self.weights)]
        order: list[Any] = []
        while left:
            pick = random.choices(range(len(left)), [weight for _, weight in left])[0]
            order.append(left.pop(pick)[0])
        return order

    def _round(self, room: int) -> None:
        """Claims from the queues in their order until there is no more room."""
        if len(self.lanes) > 1:
            self._probe()
        for lane in self._arranged():
            if room <= 0 or self._stop:
                return
            parked = lane.take_parked(MAX_UNPARKED) if lane.parked and self.may_claim(lane) else []
            if parked:
                room -= self.claim(lane, room, 0, parked=parked)
            if room > 0 and lane.hot and self.may_claim(lane):
                room -= self.claim(lane, room, 0)
                if lane.hot and self.weights is None and self.may_claim(lane):
                    return  # the claim ended early, such as before large messages: later queues wait

    def _probe(self) -> None:
        """Looks at queues that were empty a while ago, with one request for all queues of a slot."""
        now = time.monotonic()
        for w in self.waiters:
            lanes = [
                lane
                for lane in w.lanes
                if not lane.hot
                and not self._paused(lane)
                and now - lane.probed >= PROBE_INTERVAL
                and now >= self._not_before(lane)
                and self._fresh(lane)
            ]
            if not lanes:
                continue
            for lane in lanes:
                lane.probed = now
            try:
                todos, _ = check(w.claims, [lane.store for lane in lanes])
            except RefusedError:
                for lane in lanes:
                    lane.hot = True  # claims show for which queue
                continue
            except DelayedError:
                w.until = now + w.claims_backoff.next()
                continue
            for lane, todo in zip(lanes, todos):
                lane.hot = todo.pending > 0 or todo.unknown  # a claim shows it

    def _arm(self) -> None:
        """Makes the waiters block. Without a fresh heartbeat they do not, because the worker could not claim."""
        now = time.monotonic()
        for w in self.waiters:
            allowed = [lane for lane in w.lanes if not lane.refused]
            if now < w.until or not all(lane.fresh(self.life) for lane in allowed):
                continue
            lanes = [
                lane for lane in self._arranged() if lane in allowed and not self._paused(lane) and now >= lane.rest
            ]
            if not w.blocking:
                w.arm(lanes, self.suspects.takes())
                continue
            try:
                w.renew(lanes)
            except DelayedError as e:
                self._failed(w, e)

    def block(self, pause: float | None) -> bool:
        """Waits until there may be something to do, and handles the event that has come.

        It returns whether pause seconds were over before any event.
        """
        try:
            event = self._events.get(timeout=pause) if pause != 0 else self._events.get_nowait()
        except queue.Empty:
            return True
        while True:
            if event is None:
                self._signaled = False
                if self._nudged:
                    with self._mu:
                        nudged, self._nudged = self._nudged, set()
                    for lane in nudged:
                        lane.hot = lane.mend = True
            else:
                self._handle(*event)
            try:
                event = self._events.get_nowait()
            except queue.Empty:
                return False

    def _handle(self, w: Waiter, key: bytes | None, error: DelayedError | None) -> None:
        self._look_behind()
        w.blocking = False
        if error is not None:
            self._failed(w, error)
            for lane in w.lanes:
                lane.hot = True  # a notification may have been lost with the reply
            return
        if w.recovered(key, time.monotonic()):
            w.backoff.reset()
            self.waits.relief(logger, 'waiting for tasks again')
        if key is None or key == w.rewait.encode():
            return
        woken = w.noti.get(key) or w.suspects_noti.get(key)
        if woken is None:
            self._on_due()
            return
        # Claim from the queue of the notification, or give the notification back if there is no room any more.
        room, _ = self._room()
        if self._stop or self._paused(woken) or time.monotonic() < woken.rest:
            room = 0
        if key in w.noti:
            self.claim(woken, 0 if self.suspects.lone else room, 1)
        else:
            self.suspects.claim(woken, int(room > 0 and self.suspects.takes()), 1)

    def _failed(self, w: Waiter, error: DelayedError) -> None:
        if not self._stop:
            self.waits.trouble(logger, 'cannot wait for tasks; trying again', error)
            w.failed(error, time.monotonic())
            if isinstance(error, WrongTypeError):
                self._on_due()  # nobody hears when something is due, as long as waits are refused

    def claim(self, lane: Lane, room: int, held: int, suspects: bool = False, parked: list[str] | None = None) -> int:
        """Claims at most room tasks of a queue, or of its suspects, or some of its parked tasks, and returns how many
        run here.

        Parked tasks do not become pending in between, because another worker that does not know their functions would
        claim them and park them again.
        """
        w = self._of[lane]
        done: list[Claim] = []
        if parked is None:
            done = self.executors.serve(lane)
            self._serving = True
        left = parked or []
        self.executors.expect(room)
        try:
            try:
                haul, claims = lane.claim(w.claims, room, held, lane.mend and not suspects, done, suspects, parked)
                if haul.status == 1:
                    left = left[haul.left :]
            except DelayedError as e:
                # Redis may refuse claims from one queue alone, such as for a key of the wrong type: others go on.
                alone = isinstance(e, RefusedError)
                complaints = lane.complaints if alone else self.complaints
                complaints.trouble(logger, f'queue {lane.name}: cannot claim tasks; trying again', e)
                w.claims.hang_up()
                if alone:
                    lane.rest = time.monotonic() + lane.backoff.next()
                else:
                    w.until = time.monotonic() + w.claims_backoff.next()
                lane.hot = True
                return 0
            if haul.status == 0:
                lane.beat()
                w.until = time.monotonic() + PAUSED_REST
                return 0
            if haul.status == -1:
                logger.error('queue %s: a batch number was used before; going on with the next', lane.name)
                return 0
            if haul.status == -2:
                lane.look()
                lane.rest = time.monotonic() + PAUSED_REST
                lane.hot = True
                return 0
            self.complaints.relief(logger, 'claiming tasks again')
            lane.complaints.relief(logger, f'queue {lane.name}: claiming tasks again')
            w.claims_backoff.reset()
            lane.backoff.reset()
            if parked is not None:
                if not left:
                    self._on_due()  # there may be more due tasks
                if claims:
                    self._log_unparked(lane.name, len(claims))
                return self._receive(w.claims, claims)
            if suspects:
                lane.suspects = haul.left > 0
                return self._receive(w.claims, claims)
            lane.mend = False
            lane.left = haul.left
            # On a legacy queue, pending tasks without a notification may be left: they belong to another worker.
            lane.hot = haul.left > 0 and (bool(haul.messages) or room == 0)
            if not lane.hot:
                lane.probed = time.monotonic()
            return self._receive(w.claims, claims)
        finally:
            if parked is not None:
                lane.put_parked(left)
            self.executors.arrived(room)

    def _log_unparked(self, queue: str, n: int) -> None:
        def write(n: int) -> None:
            logger.info('queue %s: %d parked tasks were claimed: this worker can run them', queue, n)

        self._lines.log((queue, 'unparked', ''), write, n)

    def mend_after_stop(self) -> None:
        """Puts back notifications that may have been lost when the waits were cut off.

        Until Redis notices that such a connection is closed, it may send notifications to it, also those of tasks that
        are given back meanwhile. So this is called again when all tasks have been given back.
        """
        for w in self.waiters:
            for lane in w.lanes if w.blocking else ():
                try:
                    lane.claim(w.claims, 0, 0, True, [])
                except RefusedError:
                    continue
                except DelayedError:
                    break  # another worker repairs the list at its next look
            w.claims.hang_up()
