"""Coroutines that are told to end, without signals: by calls at points where a signal handler may run."""

import asyncio
import socket
import sys

import msgpack
import pytest

from godelayed.outcomes import TaskCanceled, TaskTimeout
from godelayed.registry import Function, Registry
from godelayed.worker import child
from godelayed.worker.coroutine import Coroutine


def test_interrupt_in_the_event_loop_cancels():
    raised, cancelled = [], []

    def handler():
        try:
            c.interrupt('timeout', sys._getframe())
        except BaseException as e:  # the event loop would catch and log it
            raised.append(e)

    async def work():
        asyncio.get_running_loop().call_soon(handler)
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    c = Coroutine(work)
    with pytest.raises(TaskTimeout):
        asyncio.run(c.run())
    assert (raised, cancelled) == ([], [True])


def test_interrupt_in_the_coroutine_raises():
    async def inner():
        c.interrupt('canceled', sys._getframe())

    async def work():
        await asyncio.sleep(0)
        await inner()

    c = Coroutine(work)
    with pytest.raises(TaskCanceled):
        asyncio.run(c.run())


def test_interrupt_before_the_start_and_behind_the_end():
    async def work():
        return 7

    early = Coroutine(work)
    early.interrupt('timeout', sys._getframe())
    with pytest.raises(TaskTimeout):
        asyncio.run(early.run())
    late = Coroutine(work)
    assert asyncio.run(late.run()) == 7
    late.interrupt('timeout', sys._getframe())


def test_cancellation_of_its_own_is_none_of_ours():
    async def work():
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(Coroutine(work).run())


def test_a_coroutine_may_end_in_its_own_way():
    async def work():
        asyncio.get_running_loop().call_soon(lambda: c.interrupt('timeout', sys._getframe()))
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            return 'cleaned up'

    c = Coroutine(work)
    assert asyncio.run(c.run()) == 'cleaned up'


@pytest.fixture
def hosting():
    """A process for coroutines, and what sends it an order without a signal."""
    (ours, theirs), (orders, obeyed) = socket.socketpair(), socket.socketpair()
    c = child._Coroutines(theirs, obeyed)
    with ours, theirs, orders, obeyed, c._file:
        yield c, lambda number: orders.send(child.ORDER.pack(number, b'timeout'))
        c._loop.close()
        asyncio.set_event_loop(None)


class Told:
    """A call that notes that it was told to end."""

    def __init__(self, then):
        self.told, self.then = 0, then

    def interrupt(self, why, frame):
        self.told += 1
        self.then()


@pytest.mark.parametrize('when', ['before an order is taken', 'while a task is told'])
def test_a_signal_while_another_one_is_handled(hosting, when):
    """Python calls the handler again in the middle. An error in it would end the process, and all tasks with it."""
    c, order = hosting
    signals = [3]

    def signal():
        if signals:
            order(signals.pop())
            c.interrupt(0, None)

    class Waiting(dict):
        def pop(self, number):
            if when == 'before an order is taken':
                signal()
            return super().pop(number)

    c._waiting = Waiting()
    c._runs = {1: Told(signal), 2: Told(lambda: None), 3: Told(lambda: None)}
    order(1)
    order(2)
    c.interrupt(0, None)
    assert [run.told for run in c._runs.values()] == [1, 1, 1]
    assert not c._waiting


def test_a_signal_tells_all_although_the_running_one_ends(hosting):
    c, order = hosting

    def end():
        raise TaskTimeout

    c._runs = {1: Told(end), 2: Told(lambda: None)}
    order(1)
    order(2)
    with pytest.raises(TaskTimeout):
        c.interrupt(0, None)
    assert [run.told for run in c._runs.values()] == [1, 1]
    c._runs[3] = Told(lambda: None)
    order(3)
    c.interrupt(0, None)
    assert c._runs[3].told == 1  # an ended one leaves nothing behind


def test_an_order_for_a_task_that_has_come_but_not_begun_is_kept(monkeypatch):
    """The process may stand still in between for as long as the task may run."""

    async def wait():
        await asyncio.sleep(1)

    registry = Registry()
    registry.add(Function('m:f', wait, coroutine=True))
    monkeypatch.setattr(child, 'registry', registry)
    (ours, theirs), (orders, obeyed) = socket.socketpair(), socket.socketpair()
    c = child._Coroutines(theirs, obeyed)
    with ours, theirs, orders, obeyed, c._file:
        frame = msgpack.packb([1, 'q', msgpack.packb(['m:f'])])
        ours.sendall(child.HEAD.pack(len(frame)) + frame)
        c._read()
        c._take(1, 'timeout')
        c._loop.add_reader(ours.fileno(), c._loop.stop)
        c._loop.run_forever()
        number, _, ok, *_, interrupted = msgpack.unpackb(ours.recv(4096)[child.HEAD.size :])
        c._loop.close()
        asyncio.set_event_loop(None)
    assert (number, ok, interrupted) == (1, False, 'timeout')
    assert not c._waiting
    assert not c._read_but_not_run
