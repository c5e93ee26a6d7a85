"""What tests of the producer share: godelayed.aio with the interface of the synchronous package, and the pending tasks
of a queue."""

import asyncio

import msgpack
import redis.asyncio

import godelayed.aio

GO, PY = 'example.com/app/mail.Welcome', 'mail.tasks:welcome'


class Blocking:
    """godelayed.aio with the names and blocking methods of the synchronous package, so that tests run on both."""

    def __init__(self, port, name, **how):
        self.client = redis.asyncio.Redis(port=port)
        self.queue = godelayed.aio.Queue(name, self.client, **how)
        self.loop = asyncio.new_event_loop()

    def options(self, **options):
        other = object.__new__(Blocking)
        other.loop, other.client, other.queue = self.loop, self.client, self.queue.options(**options)
        return other

    def _run(self, what):
        return self.loop.run_until_complete(what)

    def delay(self, *args, **kwargs):
        return BlockingRef(self, self._run(self.queue.delay(*args, **kwargs)))

    def delay_many(self, calls):
        return [BlockingRef(self, r) for r in self._run(self.queue.delay_many(calls))]

    def ref(self, id):
        return BlockingRef(self, self.queue.ref(id))

    @property
    def periodic(self):
        return BlockingRef(self, self.queue.periodic)

    def __len__(self):
        return self._run(self.queue.length())

    def close(self):
        self._run(self.client.aclose())
        self.loop.close()


class BlockingRef:
    def __init__(self, blocking, ref):
        self._blocking, self._ref, self.id = blocking, ref, getattr(ref, 'id', None)

    def __getattr__(self, name):
        return lambda *args, **kwargs: self._blocking._run(getattr(self._ref, name)(*args, **kwargs))


def pending(redis, name='mail'):
    return [msgpack.unpackb(m, strict_map_key=False) for m in redis.lrange(name, 0, -1)]
