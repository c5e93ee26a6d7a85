"""The worker's side of its processes: one thread that gives them tasks, and interrupts or kills those that must end."""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import signal
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import msgpack

from .child import HEAD, MOST_FRAME, ORDER
from .executors import Executors
from .judge import Ended
from .lane import Claim
from .link import Backoff
from .memory import resident_of
from .nursery import SIGNAL, Nursery

logger = logging.getLogger('godelayed.worker')


_AGAIN = 0.2  # seconds between two signals to a task that must end
_PATIENCE = 3600.0  # longest time of one wait in seconds, because select accepts at most 24.8 days


class _Process:
    """One worker process, from the request to fork it until it is dead."""

    def __init__(self, number: int, tasks: socket.socket, orders: socket.socket) -> None:
        self.number = number
        self.tasks = tasks
        self.orders = orders
        self.pid = 0
        self.ready = False
        self.retired = False  # whether it gets no more tasks
        self.ran = 0
        self.claim: Claim | None = None
        self.serial = 0  # number of its task
        self.ends = 0.0  # when it is told to end, monotonic; 0: never
        self.dies = 0.0  # when it is killed; 0: it was not told to end
        self.why = ''  # why it was told to end; '' if it was not
        self.again = 0.0  # when it is told again
        self.buffer = bytearray()
        self.out = b''
        # What runs a task at a time: the process itself, or the seats of a process for coroutines.
        self.seats = [self]
        self.host = self  # the process of a seat
        self.killed = False  # the worker has killed it
        self.coroutines = False
        self.taken: dict[int, _Process] = {}  # the seats that run a coroutine, by the numbers of their tasks

    def running(self) -> list[_Process]:
        """Returns what runs a task: its seats, or itself."""
        return list(self.taken.values()) if self.coroutines else [self] if self.claim is not None else []

    def sit(self, n: int) -> None:
        """Makes it a process for n coroutines at once."""
        self.coroutines = True
        self.seats = [_Process(self.number, self.tasks, self.orders) for _ in range(n)]
        for seat in self.seats:
            seat.host = self


class Pool:
    """Runs tasks in n processes."""

    def __init__(
        self,
        executors: Executors,
        nursery: Nursery,
        n: int,
        kill_after: float,
        max_tasks: int,
        max_memory: int,
        begin: Callable[[Claim, Callable[[str], None], Callable[[bool], None]], None],
        conclude: Callable[[Claim, Ended], bool],
        died: Callable[[Claim, bool], None],
        progress: Callable[[Claim, int, int, str], None],
        broken: Callable[[], None],
        coroutines: int = 0,
    ) -> None:
        self.executors = executors
        self.nursery = nursery
        self.n = n
        self.coroutines = coroutines  # how many coroutines run at once, in one process
        self.kill_after = kill_after  # seconds
        self.max_tasks = max_tasks  # tasks that one process runs; 0: without a limit
        self.max_memory = max_memory  # bytes that one process takes after a task; 0: without a limit
        self._begin = begin
        self._conclude = conclude
        self._died = died
        self._progress = progress
        self._broken = broken
        self._selector = selectors.DefaultSelector()
        self._processes: dict[int, _Process] = {}
        self._next = self._serial = 0
        self._idle: deque[_Process] = deque()
        self._host: _Process | None = None  # the process for coroutines
        self._hosts = 0  # such processes, with those that are about to end
        self._seats: deque[_Process] = deque()  # idle ones of processes for coroutines
        self._woken, self._wakes = socket.socketpair()
        self._woken.setblocking(False)
        self._wakes.setblocking(False)
        self._poked = False
        self._mail: deque[tuple[Any, ...]] = deque()  # requests of other threads
        self._wait = Backoff()
        self._not_before = 0.0  # no process is forked before this time
        self._over = False
        self.gone = threading.Event()
        executors.wake_pool = self.wake

    def pids(self) -> list[int]:
        """Returns the ids of the processes. Any thread may call it."""
        return [p.pid for p in list(self._processes.values()) if p.pid]

    def wake(self) -> None:
        """Makes the thread look for work."""
        if not self._poked:
            self._poked = True
            with contextlib.suppress(BlockingIOError, OSError):
                self._wakes.send(b'w')

    def interrupt(self, c: Claim, why: str) -> None:
        """Tells a running task to end. Any thread may call it."""
        self._mail.append(('interrupt', c, why))
        self.wake()

    def kill_all(self) -> None:
        """Kills the processes of all running tasks without telling the tasks before."""
        self._mail.append(('kill',))
        self.wake()

    def abandon(self) -> None:
        """Ends the thread soon, without reporting what happened to the processes and their tasks."""
        self._over = True

    def close(self) -> None:
        """Ends the thread and its processes."""
        self._mail.append(('close',))
        self.wake()

    def run(self) -> None:
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        self._selector.register(self.nursery.socket, selectors.EVENT_READ, self.nursery)
        try:
            while not self._over:
                self._fill()
                self._assign()
                for key, _ in self._selector.select(self._patience()):
                    if key.data is None:
                        with contextlib.suppress(BlockingIOError):
                            self._woken.recv(4096)
                        # Reset it only here: another poke before the read would be read with the others, and later ones
                        # would not be sent.
                        self._poked = False
                    elif key.data is self.nursery:
                        self._hear()
                    else:
                        self._read(key.data)
                while self._mail:
                    self._do(*self._mail.popleft())
                self._look_at_clocks()
        finally:
            for p in self._processes.values():
                p.tasks.close()
                p.orders.close()
            self.nursery.close()
            self._selector.close()
            self._woken.close()
            self._wakes.close()
            self.gone.set()

    def _fill(self) -> None:
        """Asks for as many processes as are missing."""
        now = time.monotonic()
        while not self._over and self._missing() and now >= self._not_before:
            coroutines = self._missing() > 1
            tasks, theirs = socket.socketpair()
            orders, obeyed = socket.socketpair()
            self._next += 1
            p = _Process(self._next, tasks, orders)
            tasks.setblocking(False)
            if coroutines:
                p.sit(self.coroutines)
                self._host = p
                self._hosts += 1
            try:
                self.nursery.fork(p.number, theirs, obeyed, *([True] if coroutines else []))
            except OSError as e:
                self._lost_nursery(e)
            finally:
                theirs.close()
                obeyed.close()
            self._processes[p.number] = p
            self._selector.register(tasks, selectors.EVENT_READ, p)

    def _missing(self) -> int:
        """Returns 2 if a process for coroutines is missing, 1 if another one is, else 0."""
        if self.coroutines and (self._host is None or self._host.retired):
            return 2
        return int(len(self._processes) - self._hosts < self.n)

    def _running(self) -> list[_Process]:
        """Returns what runs a task."""
        return [seat for p in self._processes.values() for seat in p.running()]

    def _lost_nursery(self, error: Exception) -> None:
        """Handles the end of the nursery: all processes have died with it, and with them the running tasks."""
        if self._over:
            return
        self._over = True
        logger.error('the process that forks worker processes is gone (%s); the worker stops', error)
        alone = len(self._running()) == 1
        for p in list(self._processes.values()):
            self._bury(p, 'its process was killed', alone)
        self._broken()

    def _assign(self) -> None:
        while self._idle or (self._seats and self.executors.ready_coroutines):
            c = self.executors.start() if self._idle else None
            idle = self._idle
            if c is None and self._seats and self.executors.ready_coroutines:
                c, idle = self.executors.start(True), self._seats
            if c is None:
                return
            p = idle.popleft()
            self._serial += 1
            p.claim, p.serial, p.ends, p.dies, p.why = c, self._serial, 0.0, 0.0, ''
            serial = self._serial
            if p.host is not p:
                p.host.taken[serial] = p

            def interrupt(why: str, c: Claim = c) -> None:
                self.interrupt(c, why)

            def go(yes: bool, p: _Process = p, c: Claim = c, serial: int = serial) -> None:
                # Either this thread calls go, or one that has asked Redis first.
                self._mail.append(('go', p, c, serial, yes))
                self.wake()

            self._begin(c, interrupt, go)
            while self._mail and self._mail[0][0] == 'go':
                self._do(*self._mail.popleft())

    def _do(self, what: str, *args: Any) -> None:
        if what == 'go':
            self._go(*args)
        elif what == 'interrupt':
            c, why = args
            for p in self._running():
                if p.claim is c:
                    self._tell(p, why)
        elif what == 'kill':
            for p in self._running():
                p.why = p.why or 'stopping'
                self._kill(p)
        else:
            self._over = True

    def _go(self, p: _Process, c: Claim, serial: int, yes: bool) -> None:
        if p.claim is not c or p.serial != serial:
            return  # the process has died meanwhile
        if not yes:
            self._free(p, c, False)
            return
        c.started = time.monotonic()
        if c.limit:
            p.ends = c.started + c.limit / 1000
        p.host.ran += 1
        frame = msgpack.packb([serial, c.lane.name, c.raw], use_bin_type=True)
        self._write(p.host, HEAD.pack(len(frame)) + frame)

    def _write(self, p: _Process, b: bytes) -> None:
        p.out += b
        try:
            while p.out:
                p.out = p.out[p.tasks.send(p.out) :]
        except BlockingIOError:
            self._selector.modify(p.tasks, selectors.EVENT_READ | selectors.EVENT_WRITE, p)
            return
        except OSError:
            p.out = b''  # the process has died, as the nursery will report
        with contextlib.suppress(KeyError, ValueError):
            self._selector.modify(p.tasks, selectors.EVENT_READ, p)

    def _read(self, p: _Process) -> None:
        if p.out:
            self._write(p, b'')
        try:
            while True:
                b = p.tasks.recv(1 << 16)
                if not b:
                    # The nursery will report why it died.
                    with contextlib.suppress(KeyError, ValueError):
                        self._selector.unregister(p.tasks)
                    break
                p.buffer += b
                if len(b) < 1 << 16:
                    break
        except BlockingIOError:
            pass
        except OSError:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(p.tasks)
        while len(p.buffer) >= HEAD.size:
            size = HEAD.unpack_from(p.buffer)[0]
            if size > MOST_FRAME:
                logger.error('worker process %d wrote what is no frame; it is killed', p.pid)
                p.buffer.clear()
                self._kill(p)
                return
            if len(p.buffer) < HEAD.size + size:
                return
            frame = msgpack.unpackb(bytes(p.buffer[HEAD.size : HEAD.size + size]), raw=False)
            del p.buffer[: HEAD.size + size]
            self._frame(p, frame)

    def _frame(self, p: _Process, frame: list[Any]) -> None:
        number, kind = frame[:2]
        if kind == 2:
            p.ready = True
            self._wait.reset()
            (self._seats if p.coroutines else self._idle).extend(p.seats)
            return
        p = p.taken.get(number, p)
        c = p.claim
        if c is None or number != p.serial:
            return
        if kind == 1:
            self._progress(c, *frame[2:5])
            return
        self._free(p, c, self._conclude(c, Ended(*frame[2:11])))

    def _free(self, p: _Process, c: Claim, done: bool) -> None:
        """Notes that a task is over and gives the process another one."""
        p.claim, p.ends, p.dies, p.why = None, 0.0, 0.0, ''
        self.executors.leave(c, done, time.monotonic() - c.started)
        host = p.host
        host.taken.pop(p.serial, None)
        large = self.max_memory and resident_of(host.pid) > self.max_memory
        if host.retired and not host.killed or large or self.max_tasks and host.ran >= self.max_tasks:
            if not host.retired:
                host.retired = True
                self._seats = deque(seat for seat in self._seats if seat.host is not host)
            if not host.taken:
                with contextlib.suppress(KeyError, ValueError):
                    self._selector.unregister(p.tasks)
                p.tasks.close()  # the process ends by itself, and another one replaces it
        elif not host.retired:
            (self._seats if host.coroutines else self._idle).append(p)

    def _tell(self, p: _Process, why: str) -> None:
        """Tells the task of a process to end, only once."""
        if p.why:
            return
        p.why, p.ends = why, 0.0
        now = time.monotonic()
        p.dies, p.again = now + self.kill_after, now + _AGAIN
        with contextlib.suppress(OSError):
            p.orders.send(ORDER.pack(p.serial, why.encode()))
        try:
            self.nursery.kill(p.number, SIGNAL)
        except OSError as e:
            self._lost_nursery(e)

    def _kill(self, p: _Process) -> None:
        p.ends = p.dies = 0.0
        host = p.host
        host.retired = host.killed = True
        self._seats = deque(seat for seat in self._seats if seat.host is not host)
        try:
            self.nursery.kill(p.number, signal.SIGKILL)
        except OSError as e:
            self._lost_nursery(e)

    def _patience(self) -> float | None:
        """Returns for how many seconds there is nothing to do unless an event comes; None: without a limit."""
        times = [t for p in self._running() for t in (p.ends, p.dies, p.again if p.dies else 0.0) if t]
        if self._missing():
            times.append(self._not_before)
        return min(max(0.0, min(times) - time.monotonic()), _PATIENCE) if times else None

    def _look_at_clocks(self) -> None:
        now = time.monotonic()
        for p in self._running():
            if p.ends and now >= p.ends:
                self._tell(p, 'timeout')
            if p.again and now >= p.again and p.dies:
                # A signal just before a blocking system call does not interrupt that call, so send it again.
                p.again = now + _AGAIN
                with contextlib.suppress(OSError):
                    self.nursery.kill(p.number, SIGNAL)
            if p.dies and now >= p.dies and p.claim is not None:
                logger.error(
                    'queue %s: %s: it did not end within %.3g s (%s); its process is killed',
                    p.claim.lane.name,
                    p.claim.message.path,
                    self.kill_after,
                    p.why,
                )
                self._kill(p)

    def _hear(self) -> None:
        """Handles one answer of the nursery."""
        try:
            kind, number, value = self.nursery.read()
        except (OSError, struct.error) as e:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(self.nursery.socket)
            self._lost_nursery(e)
            return
        p = self._processes.get(number)
        if p is None:
            return
        if kind == b'B':
            p.pid = value
            return
        if p.tasks.fileno() >= 0:
            self._read(p)  # what it sent before it died
        self._bury(p, _cause(value))

    def _bury(self, p: _Process, cause: str, alone: bool = True) -> None:
        del self._processes[p.number]
        if p in self._idle:
            self._idle.remove(p)
        if p.coroutines:
            self._hosts -= 1
            self._host = None if self._host is p else self._host
            self._seats = deque(seat for seat in self._seats if seat.host is not p)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(p.tasks)
        p.tasks.close()
        p.orders.close()
        if not p.ready:
            self._not_before = time.monotonic() + self._wait.next()
            logger.error('a worker process died before it was ready: %s', cause)
        running = p.running()
        if not running and not p.retired and p.ready:
            logger.error('worker process %d died: %s', p.pid, cause)
        for seat in running:
            self._mourn(p, seat, cause, alone and len(running) == 1)

    def _mourn(self, host: _Process, p: _Process, cause: str, alone: bool) -> None:
        """Ends the claim of a task whose process has died."""
        c = p.claim
        if c is None:
            return
        p.claim = None
        done = False
        if p.host.killed and not p.why and host.coroutines:
            # Another coroutine did not end when told to, and the worker killed the process because of it.
            done = self._conclude(c, Ended(ok=False, says='release', error='its process was killed'))
        elif p.why:
            # The worker killed it because it did not end when told to.
            ended = Ended(ok=False, error=f'its process was killed: {p.why}', interrupted=p.why)
            done = self._conclude(c, ended)
        else:
            logger.error(
                'queue %s: %s (%s): worker process %d died: %s',
                c.lane.name,
                c.message.path,
                c.message.id,
                host.pid,
                cause,
            )
            self._died(c, alone)
        self.executors.leave(c, done, time.monotonic() - c.started)


def _cause(status: int) -> str:
    if os.WIFSIGNALED(status):
        sig = os.WTERMSIG(status)
        try:
            return f'killed by {signal.Signals(sig).name}'
        except ValueError:
            return f'killed by signal {sig}'
    return f'exit code {os.WEXITSTATUS(status)}'
