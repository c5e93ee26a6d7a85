"""What godelayed.aio does differently: waiting, over one connection for all callers."""

import asyncio
import contextlib
import types

import pytest
import redis.asyncio
import redis.exceptions

import godelayed.aio
from godelayed import UnavailableError, WaitTimeoutError
from godelayed.aio import signals
from godelayed.aio.signals import Signals


@pytest.fixture
def connections(monkeypatch):
    """Makes Signals on connections with given answers, which may be errors, and lists the pauses between connections.

    After its answers a connection is silent.
    """
    pauses = []

    def make(*answers):
        left = [list(a) for a in answers]

        class PubSub:
            connection = None

            def __init__(self):
                self.answers = left.pop(0) if left else []

            async def subscribe(self, *channels):
                if self.answers and self.answers[0] == 'refused':
                    raise redis.exceptions.ConnectionError('refused')

            unsubscribe = subscribe

            async def get_message(self, timeout):
                if not self.answers:
                    await asyncio.sleep(3600)
                answer = self.answers.pop(0)
                if isinstance(answer, Exception):
                    raise answer
                return answer

            async def aclose(self):
                raise redis.exceptions.ConnectionError('broken')  # as every other call on it

        client = types.SimpleNamespace(pubsub=PubSub)
        return Signals(types.SimpleNamespace(client=client, adopt=lambda _: None, drop=lambda _: None))

    monkeypatch.setattr(signals, 'pause', lambda failures: pauses.append(failures) or 0)
    return make, pauses


def test_while_redis_is_away_who_waits_asks_with_growing_pauses(connections):
    """Once Redis has answered, the pauses start anew."""
    make, pauses = connections
    message = {'type': 'message', 'channel': b'c', 'data': b'ended'}
    broken = redis.exceptions.ConnectionError('broken')
    s = make(['refused'], ['refused'], ['refused'], [message, broken], ['refused'], [message])

    async def run():
        with s.listen('c') as told:
            await told.wait(60)
            while len(pauses) < 5:
                await asyncio.sleep(0)
            await told.wait(60)

    asyncio.run(asyncio.wait_for(run(), 60))
    assert pauses == [0, 1, 2, 0, 1]


@pytest.fixture
def waiting(monkeypatch):
    """Waits for a result; the test gives the outcome of each look."""

    async def wait(timeout, *looks):
        q = godelayed.aio.Queue('mail', redis.asyncio.Redis(port=1))
        ref = q.ref('x')
        left = list(looks)
        told = types.SimpleNamespace(replaced=False, wait=lambda _: asyncio.sleep(0))

        async def outcome():
            look = left.pop(0)
            if isinstance(look, Exception):
                raise look
            return await look() if callable(look) else look

        monkeypatch.setattr(godelayed.aio.Ref, '_outcome', lambda _: outcome())
        monkeypatch.setattr(q._signals, 'listen', lambda _: contextlib.nullcontext(told))
        try:
            return await ref.result(timeout)
        finally:
            assert not left

    return wait


def test_who_waits_in_asyncio_goes_on_while_redis_cannot_be_asked(waiting):
    away = UnavailableError('look: away')
    found = types.SimpleNamespace(value=lambda: 42)
    assert asyncio.run(waiting(60, away, away, None, away, found)) == 42
    with pytest.raises(WaitTimeoutError, match='Redis could not be asked: look: away'):
        asyncio.run(waiting(0, away))


def test_a_cancellation_that_a_connection_has_swallowed_ends_the_wait(waiting):
    """redis-py may swallow it while it connects or closes a connection."""

    async def run():
        async def swallow():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(3600)

        task = asyncio.ensure_future(waiting(60, None, swallow))
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(run(), 60))
