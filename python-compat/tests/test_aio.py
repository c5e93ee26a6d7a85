"""What godelayed.aio does by itself: the connection that all who wait share."""

import asyncio
import types

import pytest
import redis.exceptions

from godelayed.aio import signals
from godelayed.aio.signals import Signals


@pytest.fixture
def connections(monkeypatch):
    """Makes Signals on connections of which each has a list of answers, errors among them, and the pauses between
    them.

    Behind its answers a connection is silent.
    """
    pauses = []

    def make(*answers):
        left = [list(a) for a in answers]

        class PubSub:
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
                pass

        return Signals(types.SimpleNamespace(pubsub=PubSub))

    monkeypatch.setattr(signals, 'pause', lambda failures: pauses.append(failures) or 0)
    return make, pauses


def test_while_redis_is_away_who_waits_asks_with_growing_pauses(connections):
    """Until it answers: then they begin anew."""
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
