"""Worker processes and the parts that control them: the pool, the nursery, and how a process obeys orders."""

import contextlib
import os
import selectors
import signal
import socket
import types

import msgpack
import pytest

from godelayed import current
from godelayed.registry import Function, Registry
from godelayed.worker import child, nursery, pool
from godelayed.worker.judge import Ended


class Clock:
    """A clock that the test sets."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


class Mother:
    """A nursery that records its orders."""

    def __init__(self):
        self.signals, self.forked = [], []

    def kill(self, number, sig):
        self.signals.append(sig)

    def fork(self, number, tasks, orders, coroutines=False):
        self.forked.append(number)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(pool, 'time', clock)
    return clock


@pytest.fixture
def ends():
    """Tasks that have left the pool, as (task, done)."""
    return []


@pytest.fixture
def workers(ends):
    """A pool of one process whose thread does not run. It records 'died' for a task that died."""
    executors = types.SimpleNamespace(leave=lambda c, done, took: ends.append(done), start=lambda: None)
    p = pool.Pool(
        executors, Mother(), 1, 3.0, 0, 0, None, lambda c, ended: ended.ok, lambda *_: ends.append('died'), None, None
    )
    yield p
    for process in p._processes.values():
        process.tasks.close()
        process.orders.close()
    for s in (p._woken, p._wakes, p._selector):
        s.close()


@pytest.fixture
def running(workers):
    """A process of the pool that runs a task, with the process's end of its socket."""
    tasks, theirs = socket.socketpair()
    tasks.setblocking(False)
    p = workers._processes[1] = pool._Process(1, tasks, socket.socket())
    claim = types.SimpleNamespace(
        started=0.0, lane=types.SimpleNamespace(name='q'), message=types.SimpleNamespace(path='m:f', id='x')
    )
    p.ready, p.claim, p.serial = True, claim, 7
    with theirs:
        yield p, theirs


def test_what_a_process_has_told_before_it_died_counts(workers, running, ends):
    """Its task has ended, so it has not died with the process, even if the pool reads the nursery's answer first."""
    frame = msgpack.packb([7, 0, True, None, '', '', 0, '', '', False, ''])
    running[1].sendall(pool.HEAD.pack(len(frame)) + frame)
    workers.nursery.read = lambda: (b'D', 1, 9)
    workers._hear()
    assert (ends, workers._processes, list(workers._idle)) == ([True], {}, [])


def test_a_process_for_coroutines_is_replaced_by_one(workers, clock):
    workers.coroutines = 2
    for _ in range(3):
        workers._fill()
        assert len(workers._processes) == 2  # one of them for coroutines
        host = workers._host
        host.ready = host.retired = True
        workers._bury(host, 'exit code 0')


@pytest.mark.parametrize('how', ['killed', 'dead'])
def test_no_coroutine_starts_in_a_process_that_is_gone(workers, clock, how):
    workers.coroutines = 2
    workers._fill()
    host = workers._host
    workers._frame(host, [0, 2])  # it is ready
    assert len(workers._seats) == 2
    if how == 'killed':
        workers._kill(host)
    else:
        workers._bury(host, 'exit code 1')
    assert not workers._seats


def test_a_task_is_told_to_end_until_it_does_or_is_killed(workers, running, clock):
    """A signal just before a blocking system call does not interrupt that call, but the next signal does."""
    p, _ = running
    workers._tell(p, 'timeout')
    told = []
    while signal.SIGKILL not in workers.nursery.signals:
        before, patience = len(workers.nursery.signals), workers._patience()
        assert 0 < patience < 0.21
        clock.now += patience + 0.001
        workers._look_at_clocks()
        told.append(len(workers.nursery.signals) - before)
    assert clock.now == pytest.approx(103, abs=0.02)
    assert set(workers.nursery.signals[:-1]) == {signal.SIGUSR1}
    assert told == [1] * len(told)


def test_what_does_not_end_at_a_stop_is_no_death(workers, running, ends, monkeypatch):
    """The worker kills it and gives it back like a task that was told to end."""
    ended = []
    monkeypatch.setattr(workers, '_conclude', lambda c, e: ended.append(e.interrupted))
    workers._do('kill')
    assert workers.nursery.signals == [signal.SIGKILL]
    workers.nursery.read = lambda: (b'D', 1, signal.SIGKILL)
    workers._hear()
    assert (ended, len(ends), 'died' in ends) == (['stopping'], 1, False)


def test_processes_that_cannot_start_are_replaced_with_growing_pauses(workers, clock):
    """The pauses grow until a process is ready."""
    forked, pauses = workers.nursery.forked, []
    for n in range(1, 8):
        workers._fill()
        assert forked == list(range(1, n + 1))
        workers._bury(workers._processes[n], 'exit code 1')
        workers._fill()
        assert len(forked) == n
        pauses.append(workers._patience())
        clock.now += pauses[-1]
    assert pauses[-1] > 5 * pauses[0]  # 50 ms become 1 s, each give or take a half
    workers._fill()
    p = workers._processes[8]
    workers._frame(p, [0, 2])
    workers._bury(p, 'exit code 1')
    workers._fill()
    assert forked == list(range(1, 10))
    workers._bury(workers._processes[9], 'exit code 1')
    assert workers._patience() < 0.1


@pytest.fixture
def child_of(monkeypatch):
    """Makes a worker process of functions, and its orders.

    It calls written when the process writes on the socket of its tasks.
    """
    sockets = []

    def make(written=lambda _: None, **functions):
        registry = Registry()
        for name, f in functions.items():
            registry.add(Function(f'm:{name}', f))
        monkeypatch.setattr(child, 'registry', registry)
        orders, obeyed = socket.socketpair()
        sockets.extend((orders, obeyed))
        return child._Child(types.SimpleNamespace(makefile=lambda _: None, sendall=written), obeyed), orders

    yield make
    for s in sockets:
        s.close()


def run(c, number, path):
    return c._task(number, 'q', msgpack.packb([path]))


def test_the_order_to_end_one_task_says_nothing_of_the_next(child_of):
    seen = []

    def wait():
        orders.send(child.ORDER.pack(1, b'timeout'))
        c.interrupt(0, None)

    def fail():
        seen.append(current().interrupted)
        raise ValueError

    c, orders = child_of(wait=wait, fail=fail)
    assert [run(c, n, path).interrupted for n, path in ((1, 'm:wait'), (2, 'm:fail'))] == ['timeout', '']
    assert seen == [None]


@pytest.mark.parametrize('when', ['before the task', 'during a report'])
def test_an_order_to_end_that_comes_early_is_obeyed(child_of, when):
    """The order waits for the task, or until the report is sent: half a frame would make later ones unreadable."""
    ran, during = [], when == 'during a report'

    def order():
        orders.send(child.ORDER.pack(1, b'canceled'))
        c.interrupt(0, None)

    def report():
        ran.append('begins')
        current().progress(1)
        ran.append('ends')

    def written(_):
        order()
        ran.append('written')

    c, orders = child_of(report=report, written=written)
    if not during:
        order()
    ended = run(c, 1, 'm:report')
    assert (ended.ok, ended.interrupted) == (False, 'canceled')
    assert ran == (['begins', 'written'] if during else [])


@pytest.mark.parametrize('early', [True, False])
def test_an_order_to_end_that_comes_late_ends_nothing(child_of, early):
    """Even if the task was told to end before. An exception between two tasks would end the process."""
    c, orders = child_of(nothing=lambda: None)

    def order():
        orders.send(child.ORDER.pack(1, b'canceled'))
        c.interrupt(0, None)

    if early:
        order()
    assert run(c, 1, 'm:nothing').ok is not early
    order()
    assert run(c, 2, 'm:nothing').ok


def test_a_late_order_does_not_displace_that_of_the_running_task(child_of):
    """A signal between reading an order and taking it reads the next one."""
    c, _ = child_of(nothing=lambda: None)
    c._take(2, 'canceled')
    c._take(1, 'timeout')
    assert run(c, 2, 'm:nothing').interrupted == 'canceled'


def test_a_process_that_dies_of_an_error_prints_it(monkeypatch, capsys):
    """It ends by os._exit, which would hide the error."""
    exits = []

    def serve(tasks, orders, *_):
        tasks.close()
        orders.close()
        raise KeyError('of ours')

    woken, wakes = os.pipe()
    p = object.__new__(nursery._Process)
    p._woken, p._wakes, p._start, p._socket = woken, wakes, None, types.SimpleNamespace(close=lambda: None)
    monkeypatch.setattr(nursery, 'serve', serve)
    monkeypatch.setattr(nursery, 'die_with_parent', lambda: None)
    monkeypatch.setattr(nursery, 'os', types.SimpleNamespace(close=os.close, _exit=exits.append))
    p._be_born([s.detach() for s in socket.socketpair()], False)
    assert exits == [1]
    assert "KeyError: 'of ours'" in capsys.readouterr().err


def test_the_nursery_keeps_no_socket_of_its_children(monkeypatch):
    """Otherwise each would stay open as long as the worker lives."""
    fds = list(os.pipe())
    p = object.__new__(nursery._Process)
    p._children, answers = {}, []
    p._answer = lambda *answer: answers.append(answer)
    monkeypatch.setattr(nursery, 'os', types.SimpleNamespace(fork=lambda: 123, close=os.close))
    p._fork(7, fds, False)
    for fd in fds:
        with pytest.raises(OSError, match='Bad file descriptor'):
            os.fstat(fd)
    assert (p._children, answers) == ({7: 123}, [(b'B', 7, 123)])


def test_the_nursery_leaves_no_process_behind(monkeypatch):
    """The kernel kills them only on Linux."""
    p, killed = object.__new__(nursery._Process), []
    p._children, p._obey = {1: 11, 2: 22}, lambda: False

    def kill(*what):
        killed.append(what)
        raise ProcessLookupError

    monkeypatch.setattr(nursery, 'os', types.SimpleNamespace(kill=kill))
    assert p.run() == 0
    assert killed == [(11, signal.SIGKILL), (22, signal.SIGKILL)]


def test_what_a_process_tells_arrives_as_it_was(workers, running, child_of, monkeypatch):
    """Results are arbitrary bytes; errors are texts in which lone surrogates are replaced."""
    p, theirs = running
    c, _ = child_of(written=theirs.sendall)
    ended, told = [], []
    monkeypatch.setattr(workers, '_conclude', lambda c, e: ended.append(e))
    monkeypatch.setattr(workers, '_progress', lambda c, *report: told.append(report))
    c._send([7, 1, 1, 2, 'half'])
    c._send([6, 0, True, b'of another task', '', '', 0, '', '', False, ''])
    c._send([7, 0, False, b'\xff\x00', 'fault', 'retry', 5, 'text \ud800', 'stack', True, 'timeout'])
    workers._read(p)
    assert told == [(1, 2, 'half')]
    assert ended == [
        Ended(False, b'\xff\x00', 'fault', 'retry', 5, 'text ?', 'stack', arguments=True, interrupted='timeout')
    ]
    assert list(workers._idle) == [p]


def test_a_process_that_writes_what_is_no_frame_is_killed(workers, running, caplog):
    """The pool does not wait for four gigabytes."""
    p, theirs = running
    theirs.sendall(b'\xff' * 8)
    workers._read(p)
    assert workers.nursery.signals == [signal.SIGKILL]
    assert (bytes(p.buffer), p.retired) == (b'', True)
    assert 'wrote what is no frame' in caplog.text


def test_a_large_task_is_handed_over_bit_by_bit(workers, running):
    """The process reads when it can, and the pool's thread must serve other processes meanwhile."""
    p, theirs = running
    workers._selector.register(p.tasks, selectors.EVENT_READ, p)
    p.tasks.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    sent, read = os.urandom(1 << 20), bytearray()
    workers._write(p, sent)
    assert p.out
    theirs.setblocking(False)
    while len(read) < len(sent):
        assert workers._selector.get_key(p.tasks).events == selectors.EVENT_READ | selectors.EVENT_WRITE or not p.out
        with contextlib.suppress(BlockingIOError):
            while True:
                read += theirs.recv(1 << 16)
        workers._read(p)
    assert bytes(read) == sent
    assert p.out == b''
    assert workers._selector.get_key(p.tasks).events == selectors.EVENT_READ


def test_a_task_that_is_handed_to_a_dead_process_is_not_written(workers, running):
    """The nursery reports what happened to it."""
    p, theirs = running
    workers._selector.register(p.tasks, selectors.EVENT_READ, p)
    theirs.close()
    workers._write(p, b'x' * 1000)
    assert p.out == b''


@pytest.mark.parametrize('other', ['task', 'serial'])
def test_a_task_whose_process_died_while_redis_was_asked_does_not_start(workers, running, other):
    p, theirs = running
    c, serial = p.claim, p.serial
    if other == 'task':
        p.claim = types.SimpleNamespace()
    else:
        p.serial += 1
    workers._go(p, c, serial, True)
    theirs.setblocking(False)
    with pytest.raises(BlockingIOError):
        theirs.recv(1)
    assert p.ran == 0


@pytest.mark.parametrize(('ready', 'retired', 'said'), [(True, False, True), (True, True, False)])
def test_an_idle_process_that_dies_by_itself_is_told_of(workers, running, caplog, ready, retired, said):
    """The pool does not log the end of a process that was to be replaced."""
    p, _ = running
    p.claim, p.ready, p.retired = None, ready, retired
    workers._bury(p, 'killed by SIGSEGV')
    assert ('died: killed by SIGSEGV' in caplog.text) == said


@pytest.mark.parametrize(('most', 'again'), [(0, True), (3, True), (2, False), (1, False)])
def test_a_process_that_has_run_its_tasks_is_replaced(workers, running, caplog, most, again):
    """It ends by itself when its socket is closed, and that is no death."""
    p, theirs = running
    workers.max_tasks, p.ran = most, 2
    workers._free(p, p.claim, True)
    assert list(workers._idle) == ([p] if again else [])
    theirs.settimeout(0)
    if again:
        with pytest.raises(BlockingIOError):
            theirs.recv(1)
        return
    assert theirs.recv(1) == b''
    workers._bury(p, 'exit code 0')
    assert caplog.text == ''


def test_a_pool_is_poked_once_for_many_who_wake_it(workers):
    workers.wake()
    workers.wake()
    assert workers._woken.recv(9) == b'w'


@pytest.mark.parametrize('n', [1, 2])
def test_what_died_with_the_nursery(workers, running, n, monkeypatch):
    """A task was alone if no other one was running."""
    p, _ = running
    alone, broken = [], []
    monkeypatch.setattr(workers, '_died', lambda c, was: alone.append(was))
    monkeypatch.setattr(workers, '_broken', lambda: broken.append(1))
    if n == 2:
        tasks = socket.socket()
        other = workers._processes[2] = pool._Process(2, tasks, socket.socket())
        other.ready, other.claim = True, p.claim
    workers._lost_nursery(OSError('gone'))
    assert alone == [n == 1] * n
    assert broken == [1]
    workers._lost_nursery(OSError('gone'))
    assert broken == [1]


@pytest.mark.parametrize(
    'ask', [lambda w, p: w._tell(p, 'timeout'), lambda w, p: w._kill(p), lambda w, p: (setattr(w, 'n', 2), w._fill())]
)
def test_a_nursery_that_can_be_told_nothing_is_gone(workers, running, ask, monkeypatch):
    """The pool does not wait for an answer that cannot come."""
    broken = []

    def fail(*_):
        raise BrokenPipeError

    monkeypatch.setattr(workers, '_died', lambda *_: None)
    monkeypatch.setattr(workers, '_broken', lambda: broken.append(1))
    workers.nursery.kill = workers.nursery.fork = fail
    ask(workers, running[0])
    assert (broken, workers._over) == ([1], True)


@pytest.mark.parametrize(
    ('status', 'text'),
    [(9, 'killed by SIGKILL'), (33, 'killed by signal 33'), (3 << 8, 'exit code 3'), (0, 'exit code 0')],
)
def test_what_a_process_died_of(status, text):
    assert pool._cause(status) == text


def test_a_process_is_started_before_it_is_ready(monkeypatch):
    """Its first task can use what start= opens."""
    order = []
    tasks, theirs = socket.socketpair()
    orders, obeyed = socket.socketpair()
    monkeypatch.setattr(signal, 'signal', lambda sig, _: order.append(sig))
    tasks.settimeout(60)
    tasks.shutdown(socket.SHUT_WR)  # without any task

    def start():
        order.append('start')
        tasks.setblocking(False)
        with pytest.raises(BlockingIOError):
            tasks.recv(1)
        tasks.settimeout(60)

    with tasks, theirs, orders, obeyed:
        assert child.serve(theirs, obeyed, signal.SIGUSR1, start) == 0
        assert order == [signal.SIGUSR1, 'start']
        frame = tasks.recv(100)
    assert msgpack.unpackb(frame[4:]) == [0, 2]


def test_a_task_of_a_function_that_is_gone_fails(child_of):
    c, _ = child_of()
    ended = run(c, 1, 'm:gone')
    assert (ended.ok, ended.error) == (False, 'm:gone: the function is gone from the registry')


def test_a_pool_that_was_left_says_so(workers):
    """Those who wait for its tasks can go on then."""
    ours, theirs = socket.socketpair()
    workers.nursery.socket, workers.nursery.close = ours, ours.close
    workers.abandon()
    workers.run()
    theirs.close()
    assert workers.gone.is_set()
