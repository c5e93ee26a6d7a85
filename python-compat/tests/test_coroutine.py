"""Coroutines that are told to end, without signals: by calls at points where a signal handler may run."""

import asyncio
import sys

import pytest

from godelayed.outcomes import TaskCanceled, TaskTimeout
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
