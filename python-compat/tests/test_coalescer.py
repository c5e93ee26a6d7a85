"""Tasks that are enqueued together, and what happens to them when the thread that sends them is interrupted."""

import asyncio
import threading

import pytest
from working import wait_for

from godelayed import DuplicateError, FullError, UnknownError, coalescer
from godelayed.coalescer import AsyncCoalescer, Coalescer


def test_an_interrupt_in_the_middle_of_a_call_leaves_nobody_waiting():
    """Callers whose tasks were in the interrupted call get an UnknownError; tasks that came meanwhile are sent."""
    sending, go, sent, ends = threading.Event(), threading.Event(), [], {}

    def send(messages):
        sent.append(list(messages))
        if len(sent) == 1:
            sending.set()
            assert go.wait(60)
        if b'2' in messages:
            raise KeyboardInterrupt

    c = Coalescer(send)

    def enqueue(message):
        try:
            c.enqueue(message)
            ends[message] = 'sent'
        except BaseException as e:
            ends[message] = type(e)

    threads = [threading.Thread(target=enqueue, args=(message,)) for message in (b'1', b'2', b'3')]
    for i, t in enumerate(threads):
        t.start()
        if i == 0:
            assert sending.wait(60)
        else:
            wait_for(lambda i=i: c._waiting and len(c._waiting[0].messages) == i, 'a task that waits')
    go.set()
    for t in threads:
        t.join()
    assert sent == [[b'1'], [b'2', b'3']]
    assert ends == {b'1': 'sent', b'2': KeyboardInterrupt, b'3': UnknownError}
    enqueue(b'4')
    assert ends[b'4'] == 'sent'


def test_an_interrupt_before_the_turn_comes_through_behind_it(monkeypatch):
    """Others may have joined the bundle meanwhile, and no other thread sends it."""
    sent, turns = [], []
    c = Coalescer(sent.append)

    class Bundle(coalescer._Bundle):
        def __init__(self):
            super().__init__()
            self.turn.wait = self.wait
            self.waits = 0

        def wait(self):
            self.waits += 1
            if self.waits == 1:
                raise KeyboardInterrupt
            turns.append(list(sent))
            c._waiting.popleft()

    monkeypatch.setattr(coalescer, '_Bundle', Bundle)
    c._busy = True  # another thread sends, which passes the turn on
    with pytest.raises(KeyboardInterrupt):
        c.enqueue(b'1')
    assert (sent, turns) == ([[b'1']], [[]])
    assert not c._busy


def test_who_fails_alone_leaves_nobody_waiting():
    def send(messages):
        if messages == [b'1']:
            raise KeyboardInterrupt

    c = Coalescer(send)
    with pytest.raises(KeyboardInterrupt):
        c.enqueue(b'1')
    assert not c._busy
    c.enqueue(b'2')


def test_each_caller_gets_an_error_of_its_own():
    """Raising an exception adds to its traceback, and threads raise at the same time."""
    why = ValueError('why')
    error = FullError('full')
    error.__cause__ = why
    copy = coalescer._copy(error)
    assert (type(copy), copy.args, copy.__cause__) == (FullError, ('full',), why)
    assert copy is not error
    odd = DuplicateError('taken', 'x')  # it cannot be made from its args alone
    assert coalescer._copy(odd) is odd


def test_an_interrupt_in_asyncio_leaves_nobody_waiting():
    async def run():
        async def send(_):
            await asyncio.sleep(3600)

        c = AsyncCoalescer(send)
        callers = [asyncio.ensure_future(c.enqueue(message)) for message in (b'1', b'2')]
        await asyncio.sleep(0)
        await asyncio.sleep(0)  # it is being sent now
        c._task.cancel()
        return await asyncio.wait_for(asyncio.gather(*callers, return_exceptions=True), 60)

    assert [type(e) for e in asyncio.run(run())] == [UnknownError, UnknownError]


def test_in_asyncio_nothing_is_sent_for_those_who_have_given_up():
    async def run():
        sent = []

        async def send(messages):
            sent.append(list(messages))

        c = AsyncCoalescer(send)
        callers = [asyncio.ensure_future(c.enqueue(message)) for message in (b'1', b'2')]
        await asyncio.sleep(0)
        for caller in callers:
            caller.cancel()
        await asyncio.gather(*callers, return_exceptions=True)
        await c.enqueue(b'3')
        return sent

    assert asyncio.run(run()) == [[b'3']]


def test_in_asyncio_what_an_ended_loop_has_left_is_not_sent():
    """Its callers are gone, and to wake them would fail."""
    sent = []

    async def send(messages):
        sent.append(list(messages))
        if messages == [b'1']:
            await asyncio.sleep(3600)

    c = AsyncCoalescer(send)
    loop = asyncio.new_event_loop()  # it ends while a message is being sent and another one waits
    callers = []
    for message in (b'1', b'2'):
        callers.append(loop.create_task(c.enqueue(message)))
        for _ in range(3):
            loop.run_until_complete(asyncio.sleep(0))
    left = [*callers, c._task]
    asyncio.run(asyncio.wait_for(c.enqueue(b'3'), 60))
    for task in left:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    loop.close()
    assert sent == [[b'1'], [b'3']]
