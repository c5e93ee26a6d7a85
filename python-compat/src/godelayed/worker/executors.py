"""Claimed tasks on their way to those who run them, a fixed number at a time.

What is done waits with its lane to be acknowledged.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Callable

from .lane import Claim, Lane

SET_APART = 2  # from so many deaths on a task waits among the suspects of its queue
PACE_TIME = 0.005  # seconds of work that are claimed ahead
PACE_MOST = 800  # tasks claimed ahead at most
PACE_WINDOW = 0.001  # the shortest time over which the length of tasks is taken
CLAIM_LOT = 200  # tasks claimed ahead by one call
OVERDUE_TIME = 0.02  # seconds that a task which was claimed ahead waits while all are busy
RESTLESS_TIME = 0.1  # seconds without claims ahead after tasks were given back, so that others come to them


def suspects_held(executors: int, deaths: int) -> int:
    """Returns how many tasks of so many deaths or more a worker holds at once: all executors, a quarter of them, and
    so on.

    Where that is 1, the task runs alone.
    """
    for _ in range(deaths - SET_APART + 1):
        if executors <= 1:
            break
        executors //= 4
    return max(executors, 1)


class Pace:
    """Finds out how long tasks take, and from that how many to claim ahead: many short ones, no long ones."""

    def __init__(self, fixed: int | None) -> None:
        self.fixed = fixed
        self._mean = self._spent = self._looked = 0.0
        self._ended = self._most = 0

    def end(self, took: float) -> None:
        self._spent += took
        self._ended += 1

    def ahead(self, n: int, now: float) -> int:
        """Returns how many tasks to claim beyond those that n executors can begin with at once."""
        if self.fixed is not None:
            return self.fixed
        if not self._ended or now - self._looked < PACE_WINDOW:
            return self._most
        mean = max(self._spent / self._ended, 1e-9)
        if not self._mean or mean > self._mean:
            self._mean = mean  # tasks have become longer: believe it at once
        else:
            self._mean = (self._mean + mean) / 2
        self._spent, self._ended, self._looked = 0.0, 0, now
        self._most = int(min(n * PACE_TIME / self._mean, PACE_MOST))
        return self._most

    def stall(self, now: float) -> None:
        """Forgets what was found: tasks claimed ahead had to wait for too long."""
        self._mean, self._most, self._spent, self._ended, self._looked = 0.0, 0, 0.0, 0, now


class Executors:
    """Tasks that are ready, and who runs how many. All of it is protected by mu."""

    def __init__(self, n: int, prefetch: int | None, life: float) -> None:
        self.n = n
        self.life = life
        self.mu = threading.Lock()
        self.work = threading.Condition(self.mu)  # for threads: there may be something to start
        self.wake_pool: Callable[[], None] | None = None  # the same for the pool of processes
        self.signal: Callable[[], None] = lambda: None  # tells the fetcher to look again
        self.ready: deque[Claim] = deque()
        self.running: dict[Claim, None] = {}
        self.coming = 0  # tasks that are being claimed, at most
        self.lone: Claim | None = None  # runs alone, or waits until it can; nothing else starts meanwhile
        self.crowded = False  # a suspect was put back for the sake of those in hand
        self.restless = 0.0  # until then, claim no more than free executors
        self.held = False  # start nothing
        self.stopped = False
        self.pace = Pace(prefetch)
        self.ahead = 0
        self.idle = 0
        self.hungry = False  # the fetcher waits for room
        self.served: Lane | None = None  # the fetcher claims from it, and acknowledges what is done there by the way
        self.budget: int | None = None  # how many tasks may still start; None: any number
        self.ended = 0

    def room(self) -> tuple[int, float, list[Claim]]:
        """Returns how many tasks may be claimed now; if none, how long to wait for more room, 0: until signal.

        The third are tasks that have waited for too long and are to be given back.
        """
        with self.mu:
            now = time.monotonic()
            self.hungry = False
            if self.lone is not None:
                return 0, 0.0, []
            wait = 0.0
            if self.pace.fixed is None and self.ready:
                wait = OVERDUE_TIME - (now - self.ready[0].batch.at)
                if wait <= 0:
                    if len(self.running) < self.n:
                        wait = OVERDUE_TIME  # one of them starts now, or waits for a heartbeat
                    else:
                        self.pace.stall(now)
                        self.restless = now + RESTLESS_TIME
                        return 0, RESTLESS_TIME, self._take_back()
            self.ahead = self.pace.ahead(self.n, now) if now >= self.restless else 0
            n = self._space()
            if n > 0:
                return n, wait, []
            self.hungry = True
            return 0, wait, []

    def _space(self) -> int:
        """Few large claims are cheaper than many small ones: none while more than half of what is claimed ahead is
        there."""
        free = self.n - len(self.running)
        n = free + self.ahead - len(self.ready) - self.coming
        if n <= 0 or n < min((self.ahead + 1) // 2, CLAIM_LOT):
            return 0
        n = min(n, free + CLAIM_LOT)
        if self.budget is not None:
            n = min(n, self.budget - len(self.ready) - self.coming)
        return n

    def expect(self, n: int) -> None:
        """Notes that up to n tasks are being claimed."""
        with self.mu:
            self.coming += n

    def arrived(self, n: int) -> None:
        """Notes that the claim of up to n tasks is over, and that they are ready or have been seen to."""
        with self.mu:
            self.coming -= n

    def serve(self, lane: Lane) -> list[Claim]:
        """Says that the fetcher is about to claim from a lane, and takes what is done there."""
        with self.mu:
            if self.served is not None and self.served is not lane and self.served.done:
                self.served.finisher.wake()
            self.served = lane
            return lane.take_done()

    def leave_off(self) -> None:
        """Says that the fetcher claims no more for now. What is done is left to the finishers."""
        with self.mu:
            if self.served is not None and self.served.done:
                self.served.finisher.wake()
            self.served = None

    def retire(self) -> None:
        """Is leave_off for good, when the fetcher ends."""
        with self.mu:
            self.hungry = False
        self.leave_off()

    def take_done(self, lane: Lane) -> list[Claim]:
        with self.mu:
            return lane.take_done()

    def put_done(self, lane: Lane, claims: list[Claim]) -> None:
        """Puts claims back of which Redis could not be told that they are done."""
        with self.mu:
            lane.done[:0] = claims

    def add(self, claims: list[Claim]) -> None:
        """Makes tasks ready."""
        if claims:
            with self.mu:
                self.ready.extend(claims)
                self._rouse()

    def _rouse(self) -> None:
        if self.wake_pool is not None:
            if self.ready:
                self.wake_pool()
        elif self.ready and self.idle and not self.held:
            self.work.notify()  # one at a time: each wakes the next once it runs itself

    def next(self, last: Claim | None, done: bool, took: float) -> Claim | None:
        """Gives back the task that a thread ran last, if any, and waits for one that may start.

        None: the thread is to end.
        """
        with self.mu:
            if last is not None:
                self._leave(last, done, took)
            while True:
                if self.stopped:
                    return None
                c = self._take()
                if c is not None:
                    return c
                self._beckon()
                self.idle += 1
                self.work.wait()
                self.idle -= 1

    def start(self) -> Claim | None:
        """Takes a task that may start, for the pool; None if there is none."""
        with self.mu:
            if self.stopped:
                return None
            c = self._take()
            self._beckon()
            return c

    def leave(self, c: Claim, done: bool, took: float) -> None:
        """Notes that a task of the pool has ended; done: it is to be acknowledged."""
        with self.mu:
            self._leave(c, done, took)
            self._beckon()

    def _take(self) -> Claim | None:
        if self.held or not self.ready or self.budget is not None and self.budget <= 0:
            return None
        for i, c in enumerate(self.ready):
            if not c.lane.fresh(self.life) and not c.lost:
                # Another worker may have it by now. The heartbeat finds out, and wakes whoever waits.
                c.lane.beat()
                continue
            if i == 0:
                self.ready.popleft()
            else:
                del self.ready[i]
            c.started = time.monotonic()
            self.running[c] = None
            if self.budget is not None:
                self.budget -= 1
            self._beckon()
            if self.wake_pool is None:
                self._rouse()
            return c
        return None

    def _leave(self, c: Claim, done: bool, took: float) -> None:
        self.running.pop(c, None)
        self.pace.end(took)
        self.ended += 1
        if c.suspicion >= SET_APART:
            self._release(c)
        if self.budget is not None and self.budget <= 0 and not self.running:
            self.signal()
        if not done:
            return
        lane = c.lane
        lane.done.append(c)
        if len(lane.done) > 1 or self.served is lane:
            return  # somebody knows
        if self.hungry and self.served is None:
            self.served = lane  # the fetcher takes it along, or leaves off
            self.signal()
        else:
            lane.finisher.wake()

    def _beckon(self) -> None:
        if self.hungry and self._space() > 0:
            self.hungry = False
            self.signal()

    def take_back(self, lane: Lane | None = None) -> list[Claim]:
        """Removes all tasks that have not started, or those of one lane."""
        with self.mu:
            if lane is None:
                return self._take_back()
            claims = [c for c in self.ready if c.lane is lane]
            self.ready = deque(c for c in self.ready if c.lane is not lane)
            self._released(claims)
            return claims

    def _take_back(self) -> list[Claim]:
        claims = list(self.ready)
        self.ready.clear()
        self._released(claims)
        return claims

    def _released(self, claims: list[Claim]) -> None:
        for c in claims:
            if c.suspicion >= SET_APART:
                self._release(c)

    def admit(self, c: Claim) -> bool:
        """Says whether the worker may hold a suspect.

        One that runs alone becomes lone, and starts when all else has ended.
        """
        with self.mu:
            most = suspects_held(self.n, c.suspicion)
            if most == 1:
                self.lone = c
                return True
            held = sum(other.suspicion >= c.suspicion for other in (*self.ready, *self.running))
            self.crowded = held >= most
            return not self.crowded

    def calm(self) -> None:
        """Claims nothing ahead for a while, so that others come to what this worker gives back."""
        with self.mu:
            self.restless = time.monotonic() + RESTLESS_TIME

    def dismiss(self, c: Claim) -> None:
        """Forgets a lone task that has not started."""
        with self.mu:
            self._release(c)

    def _release(self, c: Claim) -> None:
        """Notes that a suspect has left."""
        if self.lone is c:
            self.lone = None
        self.crowded = False
        self.signal()

    def hold(self, on: bool) -> None:
        """Makes executors start nothing, until it is called with False."""
        with self.mu:
            self.held = on
        self.wake()
        self.signal()

    def wake(self) -> None:
        """Lets executors look again, after a heartbeat."""
        with self.mu:
            self.work.notify_all()
            if self.wake_pool is not None:
                self.wake_pool()

    def stop(self) -> None:
        """Lets executors end after their present task. Ready tasks must have been taken back."""
        with self.mu:
            self.stopped = True
        self.wake()

    def in_hand(self, lane: Lane) -> list[Claim]:
        """Returns a lane's tasks that run, are ready or wait to run alone."""
        with self.mu:
            lone = (self.lone,) if self.lone is not None else ()
            return [c for c in {*self.ready, *self.running, *lone} if c.lane is lane]

    def under_way(self) -> list[Claim]:
        """Returns the tasks that run."""
        with self.mu:
            return list(self.running)

    @property
    def exhausted(self) -> bool:
        """Whether no more tasks may start."""
        return self.budget is not None and self.budget <= 0
