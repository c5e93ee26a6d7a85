"""Receives what Redis publishes, over one connection for all callers in a process that wait."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Generator
from typing import Any

import redis.exceptions

from ..link import Link
from ..ref import QUIET, REPLACED, VERIFY_EVERY, pause


class Told:
    """One caller that waits for messages of a channel."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.replaced = False  # whether another task has replaced the one that the caller waits for

    def set(self, data: Any = None) -> None:
        """Wakes the caller. data is what was published."""
        self.replaced = self.replaced or data in REPLACED
        self._event.set()

    async def wait(self, timeout: float) -> None:
        """Waits until something was published, or may have been missed, or until timeout seconds are over."""
        # Not asyncio.wait_for: before Python 3.12 it swallows a cancellation that comes together with the event.
        over = asyncio.get_running_loop().call_later(timeout, self._event.set)
        try:
            await self._event.wait()
        finally:
            over.cancel()
        self._event.clear()


class Signals:
    """Listens to channels while somebody waits.

    Messages may be lost with a connection: so all callers are woken once there is a connection again.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._reset(None)

    def _reset(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self._loop = loop
        self._channels: dict[str, list[Told]] = {}
        self._changed: asyncio.Event | None = None
        self._task: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def listen(self, channel: str) -> Generator[Told]:
        """Wakes the Told that it yields when something is published, and once the subscription is active."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._reset(loop)
        told = Told()
        listeners = self._channels.setdefault(channel, [])
        listeners.append(told)
        if self._task is None:
            self._changed = asyncio.Event()
            self._task = loop.create_task(self._run(self._changed))
        elif len(listeners) > 1:
            told.set()  # the subscription may be active already, and then Redis sends no confirmation
        assert self._changed is not None
        self._changed.set()
        try:
            yield told
        finally:
            listeners.remove(told)
            if not listeners and self._channels.get(channel) is listeners:
                del self._channels[channel]
                self._changed.set()
            if not self._channels and self._task is not None and self._loop is loop:
                self._task.cancel()
                self._task = None

    async def _run(self, changed: asyncio.Event) -> None:
        failures, loop = 0, asyncio.get_running_loop()
        while True:
            heard, pinged = loop.time(), False
            told: Any = self._link.client.pubsub()
            message: Any
            reading: asyncio.Future[Any] | None = None
            try:
                known: set[str] = set()
                while True:
                    changed.clear()
                    await self._subscribe(told, known)
                    self._link.adopt(told.connection)
                    if reading is None:
                        reading = asyncio.ensure_future(_read(told))
                    more = asyncio.ensure_future(changed.wait())
                    try:
                        await asyncio.wait({reading, more}, return_when=asyncio.FIRST_COMPLETED)
                    finally:
                        more.cancel()
                    if reading.done():
                        message, reading = reading.result(), None
                        failures = 0
                        self._tell(message)
                        if message is not None:
                            heard, pinged = loop.time(), False
                            continue
                        await self._link.verify()
                        silent = loop.time() - heard > QUIET
                        if not self._link.current(told.connection) or (silent and pinged):
                            raise redis.exceptions.ConnectionError('no messages come over this connection any more')
                        if silent:
                            await told.ping()
                            heard, pinged = loop.time(), True
            except (redis.exceptions.RedisError, OSError):
                await asyncio.sleep(pause(failures))
                failures += 1
            finally:
                if reading is not None:
                    reading.cancel()
                    with contextlib.suppress(BaseException):
                        await reading
                self._link.drop(told.connection)
                with contextlib.suppress(redis.exceptions.RedisError, OSError):
                    await told.aclose()

    async def _subscribe(self, told: Any, known: set[str]) -> None:
        new = [c for c in self._channels if c not in known]
        old = [c for c in known if c not in self._channels]
        if new:
            await told.subscribe(*new)
            known.update(new)
        if old:
            await told.unsubscribe(*old)
            known.difference_update(old)

    def _tell(self, message: dict[str, Any] | None) -> None:
        if message is None or message['type'] not in ('message', 'subscribe'):
            return
        channel = message['channel']
        for listener in self._channels.get(channel.decode() if isinstance(channel, bytes) else channel, ()):
            listener.set(message['data'])


async def _read(told: Any) -> Any:
    return await told.get_message(timeout=VERIFY_EVERY)
