"""The worker: it connects the parts, and stops them."""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import redis

from .. import middleware
from .. import registry as registries
from ..errors import ArgumentsError, DelayedError, StillRunningError
from ..registry import Registry
from . import child
from .broadcast import Broadcast
from .config import Queues, WorkerConfig
from .executors import Executors
from .fetch import Fetcher
from .finish import Finisher
from .follow import Follower, Listener
from .intake import Intake
from .judge import DEATHS_LIFE, MAX_DEATHS, Judge, Rules
from .lane import Lane
from .limits import Limits
from .link import CALL_TIMEOUT, Backoff, Link, RefusedError, Source, WrongTypeError
from .nursery import Nursery
from .pool import Pool
from .report import Reporter
from .runs import Runs
from .slots import slot_of
from .store import MAX_TOKENS, Store
from .sweep import sweeper_of
from .tally import Tally
from .threads import Coroutines, Threads

logger = logging.getLogger('godelayed.worker')


class Worker:
    """Claims tasks of its queues and calls the functions that @task has registered. run() does the work, once.

    redis is a client of redis-py; the worker makes its own connections with the address and options of that client. The
    other arguments are those of WorkerConfig. Any thread may call the methods. Call run() before the program starts
    threads of its own, because it forks.
    """

    def __init__(
        self, redis: redis.Redis, queues: Queues, *, registry: Registry | None = None, **settings: Any
    ) -> None:
        cfg = self.config = WorkerConfig(queues, **settings)
        self.registry = registry if registry is not None else registries.default
        cfg.check(self.registry.isolated)
        self.id = secrets.token_hex(16)
        self._life = cfg.seconds('heartbeat_life')
        self._source = Source(redis)
        weights = cfg.weights()
        n = cfg.slots()
        coroutines = cfg.coroutines if self.registry.coroutines else 0
        self._executors = Executors(n, cfg.prefetch, self._life, coroutines)
        self._executors.budget = cfg.max_tasks
        timeout = 0 if cfg.timeout is None else int(cfg.seconds('timeout') * 1000)
        self._judge = Judge(self.id, Rules(cfg.max_retry, cfg.backoff, timeout))
        archive_for = int(cfg.seconds('archive_for') * 1000)
        go = Store(self._source, cfg.prefix, cfg.go_queue, self.id) if cfg.go_queue else None
        self._lanes = [Lane(Store(self._source, cfg.prefix, name, self.id), cfg.legacy) for name in cfg.names()]
        self._reporter = Reporter(self.id)
        for lane in self._lanes:
            f = lane.finisher = Finisher(lane, self._executors, go, cfg.archive_max, archive_for)
            f.canceled = self._judge.canceled
            f.close_report = self._reporter.close
            f.sweep = sweeper_of(lane.store, (DEATHS_LIFE, MAX_DEATHS, archive_for, cfg.archive_max))
        if go is not None and any(lane.store.source.slot != go.source.slot for lane in self._lanes):
            raise ArgumentsError(f'go_queue {cfg.go_queue!r}: expected the tag that the names of all queues have')
        self._follower = Follower(
            self._lanes, self._executors, self._pause_lane, self._obey, lambda: self._stop_for('restart')
        )
        self._broadcast = Broadcast(self._lanes[0].store.source, self.id)
        tell = self._broadcast.add
        self._intake = Intake(
            self._lanes, self._executors, self.registry, self._judge, self._follower, go, cfg.processes, tell
        )
        self._tallies = {lane: Tally(lane) for lane in self._lanes}
        self._runs = Runs(
            self._judge,
            self._reporter,
            lambda c, failed, archived: self._tallies[c.lane].add(c, failed, archived),
            tell,
        )
        by_slot: dict[int, list[Lane]] = {}
        for lane in self._lanes:
            by_slot.setdefault(lane.store.source.slot, []).append(lane)
        self._fetcher = Fetcher(
            self._lanes,
            weights,
            list(by_slot.values()),
            self._executors,
            self._life,
            self._room,
            self._intake,
            self._may_claim,
            self._look_for_due,
            self._judge.lines,
        )
        self._executors.signal = self._fetcher.signal
        self._slots = [slot_of(self, lanes, archive_for) for lanes in by_slot.values()]
        self._listener = Listener(self._lanes, self._follower.note, self._parked, self._broadcast.watch)
        self._pool: Pool | None = None
        self._threads: Threads | None = None
        self._coroutines: Coroutines | None = None
        self._control = threading.RLock()
        self._paused = self._quiet = False
        self._stop_event = threading.Event()
        self._left = threading.Event()  # set when nothing is in hand any more
        self._reason = ''
        self._started = False
        self._nursery: Nursery | None = None
        self.on_forked: Callable[[], None] = _nothing  # run calls it when there may be threads

    @property
    def stop_reason(self) -> str:
        """Why the worker stops or has stopped: 'stop', 'max tasks', 'max time', 'max memory', 'empty',
        'restart', 'order' or 'processes'; '' while it does not stop."""
        return self._reason

    @property
    def state(self) -> str:
        """What the worker does, in the words of Go's workers: 'running', 'paused', 'quiet' or 'stopping'."""
        if self._reason:
            return 'stopping'
        return 'quiet' if self._quiet else 'paused' if self._paused else 'running'

    @property
    def busy(self) -> int:
        """How many tasks are running."""
        return len(self._executors.under_way())

    @property
    def connected(self) -> bool:
        """Whether Redis has confirmed the worker's heartbeat on every queue within its life."""
        return all(lane.fresh(self._life) for lane in self._lanes)

    @property
    def in_touch(self) -> bool:
        """Whether the worker is connected, and Redis has answered the last heartbeats."""
        return self.connected and all(s.heartbeat.answered for s in self._slots)

    def stop(self) -> None:
        """Stops the worker like a signal does. A signal handler may call it, and it never blocks."""
        self._stop_for('stop')

    def kill(self) -> None:
        """Kills all worker processes. The program must exit at once: other workers run their tasks again."""
        if self._pool is not None:
            self._pool.abandon()
        if self._nursery is not None:
            self._nursery.end()

    def _stop_for(self, reason: str) -> None:
        self._reason = self._reason or reason
        self._stop_event.set()

    def pause(self) -> None:
        """Stops claiming tasks until resume, and gives back those that were claimed ahead. Running tasks go on."""
        with self._control:
            if not self._paused:
                self._paused = True
                logger.info('worker paused')
                self._hold_back()

    def resume(self) -> None:
        """Ends a pause. It does not undo quiet."""
        with self._control:
            if self._paused:
                self._paused = False
                logger.info('worker resumed')
                self._executors.hold(self._quiet or self._intake.closed)

    def quiet(self) -> None:
        """Stops claiming tasks for good, so that the worker can be stopped without hurry once it is idle."""
        with self._control:
            if not self._quiet:
                self._quiet = True
                logger.info('worker is quiet: it claims no more tasks')
                self._hold_back()

    def _hold_back(self) -> None:
        self._executors.hold(True)
        self._intake.give_back(self._executors.take_back())

    def run(self) -> None:
        """Claims and runs tasks until stop() is called. Then it gives back tasks that have not started and waits for
        the others.

        While Redis is unreachable, it keeps trying and recovers by itself. A StillRunningError names tasks that did not
        end (with processes=False only); a DelayedError says that Redis could not be told how all tasks ended. It
        handles no signals, and may be called only once.
        """
        if self._started:
            raise DelayedError('this worker was run before: make a new one')
        self._started = True
        cfg = self.config
        if cfg.processes:
            child.registry = self.registry
            nursery = self._nursery = Nursery(self._begin)
            self._pool = Pool(
                self._executors,
                nursery,
                self._executors.n,
                cfg.seconds('kill_after'),
                cfg.max_tasks_per_process or 0,
                cfg.max_memory_per_process or 0,
                self._runs.begin,
                self._runs.conclude,
                self._runs.died,
                self._reporter.report,
                lambda: self._stop_for('processes'),
                self._executors.coroutines,
            )
        else:
            self._begin()
            how = self._runs.prepare, self._runs.conclude, self._reporter.report
            self._threads = Threads(self._executors, self._executors.n, *how)
            if self._executors.coroutines:
                self._coroutines = Coroutines(self._executors, *how)
        try:
            middleware.call_all(cfg.pool_start, *middleware.pool_starts)
        except BaseException:
            self.kill()
            raise
        self.on_forked()
        names = ', '.join(lane.name for lane in self._lanes)
        logger.info('worker %s started: queues %s, %d tasks at once', self.id, names, self._executors.n)
        beats = self._start(*(s.heartbeat.run for s in self._slots))
        beats += self._start(*(s.teller.run for s in self._slots))
        beats += self._start(self._follower.run, self._listener.run, self._broadcast.run)
        finishers = self._start(*(lane.finisher.run for lane in self._lanes))
        loops = self._start(*(s.mover.run for s in self._slots))
        loops += self._start(self._fetcher.run, *(w.run for w in self._fetcher.waiters))
        if cfg.sweep:
            loops += self._start(*(s.sweeping.run for s in self._slots))
        pool = self._start(self._pool.run) if self._pool else []
        if self._threads:
            self._threads.start()
        if self._coroutines:
            self._coroutines.start()
        limits = Limits(cfg, self._pool)
        while not self._stop_event.wait(limits.patience()):
            reason = limits.over()
            if reason:
                self._stop_for(reason)
            self._look_at_limits()
        self._wind_up(beats, finishers, loops, pool)

    def _begin(self) -> None:
        middleware.call_all(self.config.start, *middleware.process_starts)

    def _start(self, *targets: Callable[[], None]) -> list[threading.Thread]:
        threads: list[Any] = []
        for target in targets:
            owner = getattr(target, '__self__', None)
            name = f'godelayed-{type(owner).__name__.lower()}'
            t = threading.Thread(target=self._guarded, args=(target,), name=name, daemon=True)
            t.start()
            threads.append(t)
        return threads

    def _guarded(self, target: Callable[[], None]) -> None:
        try:
            target()
        except BaseException:
            logger.exception('a fault in the worker; it stops')
            self._stop_for('fault')
            raise

    def _look_at_limits(self) -> None:
        if self._executors.exhausted and not self._executors.under_way():
            self._stop_for('max tasks')
        # Wait until Redis knows how all tasks ended, or tasks to be tried again would not be pending yet.
        done = not self._executors.under_way() and not self._executors.ready and not self._intake.in_hand()
        movers = [s.mover for s in self._slots]
        if self.config.stop_when_empty and done and all(m.looks for m in movers):
            ended, looks = self._executors.ended, [m.looks for m in movers]
            end = time.monotonic() + 1.0
            while True:
                self._look_for_due()
                seen = min(m.looks - before for m, before in zip(movers, looks))
                if seen >= 2 or time.monotonic() >= end or self._stop_event.wait(0.005):
                    break
            e = self._executors
            idle = seen > 0 and all(m.idle for m in movers) and e.ended == ended
            if idle and not e.under_way() and not e.ready and not e.coming and e.lone is None:
                self._stop_for('empty')

    def _wind_up(
        self,
        beats: list[threading.Thread],
        finishers: list[threading.Thread],
        loops: list[threading.Thread],
        pool: list[threading.Thread],
    ) -> None:
        cfg = self.config
        logger.info('worker stops (%s): no more tasks are claimed', self._reason)
        with self._control:
            self._intake.close()
            self._hold_back()
        self._runs.leave()
        leaving = self._start(self._note_stop)
        end = time.monotonic() + cfg.seconds('grace')
        self._fetcher.stop()
        for s in self._slots:
            s.mover.stop()
            s.sweeping.stop()
        _join(loops, CALL_TIMEOUT + 3)
        self._intake.give_back(self._executors.take_back())
        self._executors.stop()
        if not self._idle_by(end):
            self._runs.shut()
            for c in self._executors.under_way():
                interrupt = c.interrupt
                if interrupt is not None:
                    interrupt('stopping')
            if not self._idle_by(time.monotonic() + cfg.seconds('cancel_grace')) and self._pool is not None:
                self._pool.kill_all()
                self._idle_by(time.monotonic() + 30)
        running = [c.message.path for c in self._executors.under_way()]
        if running:
            # Their claims and heartbeats last as long as the process.
            logger.error('tasks still run, and stay claimed until the process exits: %s', ', '.join(running))
            raise StillRunningError(running)
        if self._pool is not None:
            self._pool.close()
            _join(pool, 30)
        for lane in self._lanes:
            lane.finisher.stop()
        _join(finishers, cfg.seconds('cancel_grace') + CALL_TIMEOUT)
        for lane in self._lanes:
            lane.finisher.abandon()
        _join(finishers, CALL_TIMEOUT)
        self._fetcher.mend_after_stop()
        # Stop them before unregister, or a heartbeat could register the worker again after it.
        self._left.set()
        for s in self._slots:
            s.heartbeat.stop()
            s.teller.stop()
        for stopped in (self._follower, self._listener, self._broadcast, self._reporter):
            stopped.stop()
        _join(beats + leaving, CALL_TIMEOUT + 1)
        try:
            self._unregister()
        finally:
            for s in self._slots:
                self._tell_at_the_end(s.heartbeat.lanes)
        self._judge.lines.flush()
        if self._pool is None:
            middleware.call_all(*middleware.process_ends)
        logger.info('worker stopped')

    def _note_stop(self) -> None:
        """Tells Redis that the worker stops in good order, so that the tasks that it leaves behind do not count as
        having died with it."""
        wait = Backoff()
        lanes = [lane for lane in self._lanes if any(lane.count()[:2])]
        while lanes and not self._left.is_set():
            try:
                with contextlib.closing(lanes[-1].store.link()) as link:
                    lanes[-1].store.mark(link, 'stopped', '1')
                lanes.pop()
            except WrongTypeError:
                lanes.pop()  # this must not keep the others waiting
            except DelayedError:
                self._left.wait(wait.next())

    def _idle_by(self, end: float) -> bool:
        """Waits until no task runs, and returns whether that was before end."""
        if self._threads is not None:
            joined = self._threads.join(max(0.0, end - time.monotonic()))
            return joined and (self._coroutines is None or self._coroutines.join(max(0.0, end - time.monotonic())))
        while self._executors.under_way():
            left = end - time.monotonic()
            if left <= 0 or self._pool is not None and self._pool.gone.wait(min(left, 0.01)):
                break
        return not self._executors.under_way()

    def _unregister(self) -> None:
        """Removes the worker from Redis. If that fails, its heartbeat expires and a sweeper removes it."""
        errors: list[str] = []
        away = False  # whether Redis does not answer
        for lane in self._lanes:
            n = lane.finisher.waiting()
            if n:
                errors.append(f'queue {lane.name}: Redis has not confirmed how {n} tasks ended; they may run again')
                away = away or not lane.finisher.refused
        end, wait = time.monotonic() + CALL_TIMEOUT, Backoff()
        for lane in self._lanes:
            if away or lane.confirmed is None or lane.finisher.waiting():
                continue  # the heartbeat will expire
            while True:
                try:
                    with contextlib.closing(lane.store.link()) as link:
                        if not lane.store.unregister(link):
                            self._release_strangers(link, lane)
                    break
                except WrongTypeError as e:  # the worker can leave the other queues all the same
                    errors.append(f'queue {lane.name}: {e}')
                    break
                except DelayedError as e:
                    if time.monotonic() > end:
                        errors.append(f'queue {lane.name}: {e}')
                        away = True
                        break
                    time.sleep(wait.next())
        if errors:
            raise DelayedError('the worker could not take its leave from Redis: ' + '; '.join(errors))

    def _tell_at_the_end(self, lanes: Sequence[Lane]) -> None:
        """Tells Redis what has run on queues of one slot since the last time. A Redis that is away is asked once."""
        with contextlib.suppress(DelayedError), contextlib.closing(lanes[0].store.link()) as link:
            for lane in lanes:
                with contextlib.suppress(RefusedError):
                    self._tallies[lane].tell(link)

    def _release_strangers(self, link: Link, lane: Lane) -> None:
        """Gives back claims that a stopping worker holds without knowing them, and unregisters it."""
        tokens = lane.store.tokens(link)
        for i in range(0, len(tokens), MAX_TOKENS):
            lane.store.release(link, [], tokens[i : i + MAX_TOKENS])
        lane.store.unregister(link)

    # The parts call the following.

    def _may_claim(self) -> bool:
        """Returns whether the worker claims tasks at all now."""
        return not (self._paused or self._quiet or self._intake.closed or self._executors.exhausted)

    def _room(self) -> tuple[int, float]:
        if not self._may_claim():
            self._intake.give_back(self._executors.take_back())
            return 0, 0.0
        n, wait, back = self._executors.room()
        self._intake.give_back(back)
        return max(n, 0), wait

    def _look_for_due(self) -> None:
        for s in self._slots:
            s.mover.now()

    def _beaten(self) -> None:
        self._executors.wake()
        self._fetcher.signal()

    def _parked(self, path: str) -> None:
        if not path or self._intake.knows(path):
            self._look_for_due()

    def _pause_lane(self, lane: Lane, paused: bool) -> None:
        if paused:
            logger.info('queue %s: paused; no more of its tasks are claimed', lane.name)
            self._intake.give_back(self._executors.take_back(lane))
        else:
            logger.info('queue %s: resumed', lane.name)
            self._fetcher.signal()

    def _obey(self, last: str, order: str) -> None:
        if order == 'pause':
            self.pause()
        elif order == 'quiet':
            self.quiet()
        elif order == 'stop':
            self._stop_for('order')
        elif order == '' and last == 'pause':
            self.resume()


def _join(threads: list[threading.Thread], timeout: float) -> None:
    end = time.monotonic() + timeout
    for t in threads:
        t.join(max(0.0, end - time.monotonic()))


def _nothing() -> None:
    pass
