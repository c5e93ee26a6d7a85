"""Holds claimed tasks until the threads or processes of the worker run them, a fixed number at a time.

Claims that are done wait in their lane until the worker acknowledges them.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable

from .lane import Claim, Lane

SET_APART = 2  # with this many deaths or more, a task waits among the suspects of its queue
PACE_TIME = 0.005  # a worker claims ahead what takes about so many seconds
PACE_MOST = 800  # tasks claimed ahead at most
PACE_WINDOW = 0.001  # the shortest time over which the mean duration of tasks is measured
CLAIM_LOT = 200  # tasks claimed ahead by one call
OVERDUE_TIME = 0.02  # seconds that a task may wait after it was claimed ahead, while all executors are busy
RESTLESS_TIME = 0.1  # seconds without claims ahead after tasks were given back, so that others get them


def suspects_held(executors: int, deaths: int) -> int:
    """Returns how many tasks with this many deaths or more a worker holds at once: as many as it has executors below
    SET_APART deaths, a quarter of that at SET_APART deaths, and a quarter again for each further death.

    If that is 1, the task runs alone.
    """
    for _ in range(deaths - SET_APART + 1):
        if executors <= 1:
            break
        executors //= 4
    return max(executors, 1)


class Pace:
    """Measures how long tasks take and decides how many to claim ahead: many short ones, no long ones."""

    def __init__(self, fixed: int | None) -> None:
        self.fixed = fixed
        self._mean = self._spent = self._looked = 0.0
        self._ended = self._most = 0

    def end(self, took: float) -> None:
        self._spent += took
        self._ended += 1

    def ahead(self, n: int, now: float) -> int:
        """Returns how many tasks to claim in addition to those that n executors can start at once."""
        if self.fixed is not None:
            return self.fixed
        if not self._ended or now - self._looked < PACE_WINDOW:
            return self._most
        mean = max(self._spent / self._ended, 1e-9)
        if mean > self._mean:
            self._mean = mean  # tasks have become longer: use the new mean at once
        else:
            self._mean = (self._mean + mean) / 2
        self._spent, self._ended, self._looked = 0.0, 0, now
        self._most = int(min(n * PACE_TIME / self._mean, PACE_MOST))
        return self._most

    def stall(self, now: float) -> None:
        """Forgets the measurements, because tasks claimed ahead had to wait for too long."""
        self._mean, self._most, self._spent, self._ended, self._looked = 0.0, 0, 0.0, 0, now


class Executors:
    """Tasks that are ready, and those that run. mu protects all fields."""

    def __init__(self, n: int, prefetch: int | None, life: float, coroutines: int = 0) -> None:
        self.n = n
        self.coroutines = coroutines  # how many coroutines run at once, besides n others
        self.life = life
        self.mu = threading.Lock()
        self.work = threading.Condition(self.mu)  # for threads: a task may be ready to start
        self.wake_pool: Callable[[], None] | None = None  # the same for the pool
        self.wake_loop: Callable[[], None] = lambda: None  # the same for the event loop of a worker without processes
        self.signal: Callable[[], None] = lambda: None  # tells the fetcher to look again
        self.ready: deque[Claim] = deque()
        self.running: dict[Claim, None] = {}
        self.ready_coroutines = self._running_coroutines = 0  # of the coroutines among them
        self._share = 1.0  # about how many of the tasks that come are coroutines, from 0 to 1
        self.coming = 0  # upper bound for the number of tasks that are being claimed
        self.lone: Claim | None = None  # this claim runs alone, or waits until it can; nothing else starts meanwhile
        self.crowded = False  # a suspect was put back because of the tasks in hand
        self.restless = 0.0  # until this time, claim no more than free executors
        self.held = False  # whether to start nothing
        self.stopped = False
        self.pace = Pace(prefetch)
        self.ahead = 0
        self._calm = True  # whether to claim for coroutines
        self.idle = 0
        self.hungry = False  # whether the fetcher waits for room
        self.served: Lane | None = None  # the fetcher claims from it and acknowledges its done claims in the same call
        self.budget: int | None = None  # how many tasks may still start; None: without a limit
        self.ended = 0

    def room(self) -> tuple[int, float, list[Claim]]:
        """Returns how many tasks may be claimed now, how long to wait for more room if that is none (0: until signal),
        and tasks that have waited for too long.

        The caller gives the latter back.
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
                    if self._may_start(self.ready[0]):
                        wait = OVERDUE_TIME  # one of them starts now or waits for a heartbeat
                    else:
                        self.pace.stall(now)
                        self.restless = now + RESTLESS_TIME
                        return 0, RESTLESS_TIME, self._take_back()
            calm = now >= self.restless
            self.ahead = self.pace.ahead(self.n, now) if calm else 0
            self._calm = calm or not self.ready
            n = self._space()
            if n > 0:
                return n, wait, []
            self.hungry = True
            return 0, wait, []

    def _space(self) -> int:
        """Returns how many tasks to claim. A few large claims are cheaper than many small ones, so it returns 0 while
        more than half of what may be claimed ahead is there."""
        free = max(self.n - len(self.running) + self._running_coroutines, 0) + self._room_for_coroutines()
        n = free + self.ahead - len(self.ready) - self.coming
        if n <= 0 or n < min((self.ahead + 1) // 2, CLAIM_LOT):
            return 0
        n = min(n, free + CLAIM_LOT)
        if self.budget is not None:
            n = min(n, self.budget - len(self.ready) - self.coming)
        return n

    def _room_for_coroutines(self) -> int:
        """Returns how many tasks to claim for coroutines that may start. Nobody knows what comes: so it is the share
        that coroutines had among the latest tasks, and one task at least."""
        return math.ceil((self.coroutines - self._running_coroutines) * self._share) if self._calm else 0

    def _may_start(self, c: Claim) -> bool:
        """Returns whether there is room for a task of the kind of c."""
        if self.coroutines and c.function.together:
            return self._running_coroutines < self.coroutines
        return len(self.running) - self._running_coroutines < self.n

    def expect(self, n: int) -> None:
        """Notes that up to n tasks are being claimed."""
        with self.mu:
            self.coming += n

    def arrived(self, n: int) -> None:
        """Notes that the claim of up to n tasks is over: they are ready, or dealt with otherwise."""
        with self.mu:
            self.coming -= n

    def serve(self, lane: Lane) -> list[Claim]:
        """Notes that the fetcher is about to claim from a lane, and takes the claims that are done there."""
        with self.mu:
            if self.served is not None and self.served is not lane and self.served.done:
                self.served.finisher.wake()
            self.served = lane
            return lane.take_done()

    def leave_off(self) -> None:
        """Notes that the fetcher claims no more for now. Finishers acknowledge what is done."""
        with self.mu:
            if self.served is not None and self.served.done:
                self.served.finisher.wake()
            self.served = None

    def retire(self) -> None:
        """Is leave_off for good, for when the fetcher ends."""
        with self.mu:
            self.hungry = False
        self.leave_off()

    def take_done(self, lane: Lane) -> list[Claim]:
        with self.mu:
            return lane.take_done()

    def put_done(self, lane: Lane, claims: list[Claim]) -> None:
        """Puts back claims that are done but of which Redis could not be told."""
        with self.mu:
            lane.done[:0] = claims

    def add(self, claims: list[Claim]) -> None:
        """Makes claimed tasks ready."""
        if claims:
            with self.mu:
                self.ready.extend(claims)
                if self.coroutines:
                    n = sum(c.function.together for c in claims)
                    self.ready_coroutines += n
                    self._share = (self._share + n / len(claims)) / 2
                self._rouse()

    def _rouse(self) -> None:
        if self.wake_pool is not None:
            if self.ready:
                self.wake_pool()
            return
        if self.ready_coroutines:
            self.wake_loop()
        if len(self.ready) > self.ready_coroutines and self.idle and not self.held:
            self.work.notify()  # only one: each thread wakes the next once it has a task

    def next(self, last: Claim | None, done: bool, took: float) -> Claim | None:
        """Ends the task that a thread ran last, if any, and waits for one that may start.

        It returns None when the thread must end.
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

    def start(self, coroutine: bool = False) -> Claim | None:
        """Takes a task that may start, for the pool or the event loop; returns None if there is none."""
        with self.mu:
            if self.stopped:
                return None
            c = self._take(coroutine)
            self._beckon()
            return c

    def leave(self, c: Claim, done: bool, took: float) -> None:
        """Notes that a task of the pool has ended. done: it is to be acknowledged."""
        with self.mu:
            self._leave(c, done, took)
            self._beckon()

    def _take(self, coroutine: bool = False) -> Claim | None:
        n = self.ready_coroutines if coroutine else len(self.ready) - self.ready_coroutines
        if self.held or not n or self.budget is not None and self.budget <= 0:
            return None
        if coroutine and self._running_coroutines >= self.coroutines:
            return None
        mixed = self.ready_coroutines > 0
        for i, c in enumerate(self.ready):
            if mixed and c.function.together is not coroutine:
                continue
            if not c.lane.fresh(self.life) and not c.lost:
                # Another worker may have the task by now. The heartbeat finds out, and then wakes the threads that
                # wait.
                c.lane.beat()
                continue
            if i == 0:
                self.ready.popleft()
            else:
                del self.ready[i]
            c.started = time.monotonic()
            self.running[c] = None
            if coroutine:
                self.ready_coroutines -= 1
                self._running_coroutines += 1
            if self.budget is not None:
                self.budget -= 1
            self._beckon()
            if self.wake_pool is None:
                self._rouse()
            return c
        return None

    def _leave(self, c: Claim, done: bool, took: float) -> None:
        self.running.pop(c, None)
        if self._running_coroutines and c.function.together:
            self._running_coroutines -= 1
        else:
            self.pace.end(took)
        self.ended += 1
        if c.suspicion >= SET_APART:
            self._release(c)
        if not done:
            return
        lane = c.lane
        lane.done.append(c)
        if len(lane.done) > 1 or self.served is lane:
            return  # the finisher or the fetcher has been told already
        if self.hungry and self.served is None:
            self.served = lane  # the fetcher acknowledges it with its next claim, or calls leave_off
            self.signal()
        else:
            lane.finisher.wake()

    def _beckon(self) -> None:
        if self.hungry and self._space() > 0:
            self.hungry = False
            self.signal()

    def take_back(self, lane: Lane | None = None) -> list[Claim]:
        """Removes and returns all tasks that have not started, or only those of one lane."""
        with self.mu:
            if lane is None:
                return self._take_back()
            claims = [c for c in self.ready if c.lane is lane]
            self.ready = deque(c for c in self.ready if c.lane is not lane)
            self.ready_coroutines -= sum(c.function.together for c in claims) if self.ready_coroutines else 0
            self._released(claims)
            return claims

    def _take_back(self) -> list[Claim]:
        claims = list(self.ready)
        self.ready.clear()
        self.ready_coroutines = 0
        self._released(claims)
        return claims

    def _released(self, claims: list[Claim]) -> None:
        for c in claims:
            if c.suspicion >= SET_APART:
                self._release(c)

    def admit(self, c: Claim) -> bool:
        """Returns whether the worker may hold a suspect.

        A suspect that must run alone becomes lone, and starts when all other tasks have ended.
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
        """Stops claiming ahead for a while, so that other workers get what this worker gives back."""
        with self.mu:
            self.restless = time.monotonic() + RESTLESS_TIME

    def dismiss(self, c: Claim) -> None:
        """Forgets a lone task that has not started."""
        with self.mu:
            self._release(c)

    def _release(self, c: Claim) -> None:
        """Notes that a suspect is no longer here."""
        if self.lone is c:
            self.lone = None
        self.crowded = False
        self.signal()

    def hold(self, on: bool) -> None:
        """While on, executors start nothing."""
        with self.mu:
            self.held = on
        self.wake()
        self.signal()

    def wake(self) -> None:
        """Makes executors look for tasks again, after a heartbeat."""
        with self.mu:
            self.work.notify_all()
            self.wake_loop()
            if self.wake_pool is not None:
                self.wake_pool()

    def stop(self) -> None:
        """Makes executors end after their current task. Ready tasks must have been taken back."""
        with self.mu:
            self.stopped = True
        self.wake()

    def in_hand(self, lane: Lane) -> list[Claim]:
        """Returns a lane's tasks that run, are ready or wait to run alone."""
        with self.mu:
            lone = (self.lone,) if self.lone is not None else ()
            return [c for c in {*self.ready, *self.running, *lone} if c.lane is lane]

    def under_way(self) -> list[Claim]:
        """Returns the running tasks."""
        with self.mu:
            return list(self.running)

    @property
    def exhausted(self) -> bool:
        """Whether no more tasks may start."""
        return self.budget is not None and self.budget <= 0
