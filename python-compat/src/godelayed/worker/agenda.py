"""The periodic entries of a queue in Redis, whatever the link: every change names the bytes that were read, and Redis
carries it out only if the entry is still the same."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import Any

from ..calls import new_id
from ..errors import DelayedError, DuplicateError, NoEntryError
from ..producer import Settings
from .entries import LOCK_LIFE, Definition, Plan, Record, tick_id

logger = logging.getLogger('godelayed.worker')

PAGE = 100  # due entries of one look
_HISTORY = 100  # lines of history of an entry
_CONFLICTS = 100  # tries of a change while other programs change the entry


class Agenda:
    """The entries of a queue. link is that of a producer, or has the same methods run and send."""

    def __init__(self, settings: Settings, link: Any) -> None:
        self.settings = settings
        self.link = link

    async def read(self, name: str) -> bytes:
        """Returns an entry, b'' if there is none."""
        return await self.link.send('HGET', self.settings.keys.periodic, name) or b''

    async def everything(self) -> list[tuple[str, bytes]]:
        """Returns all entries, in no order."""
        k, found = self.settings.keys, list[tuple[str, bytes]]()
        names = await self.link.send('HKEYS', k.periodic)
        for i in range(0, len(names), PAGE):
            some = names[i : i + PAGE]
            values = await self.link.send('HMGET', k.periodic, *some)
            found += [(_text(name), raw) for name, raw in zip(some, values) if raw]
        return [(name, raw) for name, raw in found if name[:1] != '@']

    async def history(self, name: str) -> list[str]:
        """Returns the lines of an entry's history, the latest first."""
        return [_text(line) for line in await self.link.send('LRANGE', self.settings.keys.history + name, 0, -1)]

    async def write(self, name: str, was: bytes, raw: bytes, due: int | None) -> bool:
        """Replaces an entry; b'' removes it and its history. Returns False if it is no longer as it was read."""
        k = self.settings.keys
        args = [name, was, raw, '' if due is None else due]
        return bool(await self.link.run('entry', [k.periodic, k.ticks, k.history + name], args))

    async def change(self, name: str, edit: Callable[[Record, int], None], *, create: bool = False) -> None:
        """Reads an entry, calls edit with it and the time, and writes it; again if another program was faster."""
        for _ in range(_CONFLICTS):
            r = await self._record(name, create=create)
            edit(r, await self._now())
            raw = r.encode()
            if raw == r.raw:
                return
            if await self.write(name, r.raw, raw, r.due(r.timetable())):
                with contextlib.suppress(DelayedError):  # where Redis does not allow it, schedulers look within 5 s
                    await self.link.send('PUBLISH', self.settings.keys.signals, 'periodic')
                return
        raise _conflict(name)

    async def remove(self, name: str) -> None:
        """Removes an entry."""
        for _ in range(_CONFLICTS):
            if await self.write(name, (await self._record(name)).raw, b'', None):
                return
        raise _conflict(name)

    async def run(self, name: str) -> str:
        """Enqueues an entry's task now, and returns its id."""
        for _ in range(_CONFLICTS):
            r = await self._record(name)
            now = await self._now()
            id = f'{tick_id(name, now)}-{new_id()[:8]}'
            status, holder = await self.tick(r.run(id, now))
            if status == 1:
                return id
            if holder:
                raise DuplicateError(f'periodic entry {name!r}: its previous task, {holder!r}, is not over', holder)
        raise _conflict(name)

    async def tick(self, p: Plan) -> tuple[int, str]:
        """Carries out a plan. Returns 1; 2 and the id of the task that holds the lock; 0 if the entry has changed; or
        -1 if it is too early."""
        k = self.settings.keys
        keys = [k.list, k.noti, k.periodic, k.ticks, k.history + p.name, k.locks, k.revoked]
        dues = ['' if due is None else due for due in (p.due_free, p.due_held)]
        args: list[Any] = [p.name, p.was, p.free, p.held, *dues, p.not_before, p.lock, LOCK_LIFE, _HISTORY]
        for t in p.ticks:
            args += [t.at, t.id, t.message, t.free, t.held]
        status, _, holder = await self.link.run('tick', keys, args)
        return status, _text(holder)

    async def due(self, skip: int) -> tuple[int, int, list[tuple[str, bytes]]]:
        """Returns the time, the ms until the next entry is due (negative: there is none), and the first PAGE of those
        that are due, after skipping some."""
        k = self.settings.keys
        now, ahead, *rest = await self.link.run('agenda', [k.periodic, k.ticks], [skip, PAGE])
        return now, ahead, [(_text(name), raw) for name, raw in zip(rest[::2], rest[1::2])]

    async def declare(self, owner: str, version: int, declared: Mapping[str, Definition], again: bool = False) -> None:
        """Writes the entries that an owner's code declares, and removes those that it no longer declares, unless Redis
        knows a newer version of the owner.

        again: it has done so before, and Redis may have lost some of them. Then it only writes those that are missing,
        because newer code may have changed others meanwhile.
        """
        q, mark = self.settings.name, '@' + owner  # names of entries do not begin with @
        was = await self.read(mark)
        known = int(was) if was.isdigit() else 0
        if version < known:
            logger.warning('queue %s: periodic entries of %s: not declared: Redis knows version %d', q, owner, known)
            return
        if version > known and not await self.write(mark, was, str(version).encode(), None):
            raise _conflict(mark)
        if any(':' in d.path() for d in declared.values()):
            await self.settings.settle(self.link)
        for name, definition in declared.items():

            def edit(r: Record, now: int, definition: Definition = definition) -> None:
                if again and r.raw:
                    return
                if r.owner not in ('', owner):
                    text = 'queue %s: periodic entry %s: %s declares it, and that stays: choose another name'
                    logger.error(text, q, r.name, r.owner)
                else:
                    r.declare(owner, definition, now)

            await self.change(name, edit, create=True)
        for name, raw in () if again else await self.everything():
            with contextlib.suppress(DelayedError):  # it cannot be read
                if Record(name, raw).owner != owner or name in declared:
                    continue
                if not await self.write(name, raw, b'', None):
                    raise _conflict(name)
                logger.info('queue %s: periodic entry %s removed: the code does not declare it any more', q, name)

    async def _record(self, name: str, *, create: bool = False) -> Record:
        raw = await self.read(name)
        if not raw and not create:
            raise NoEntryError(f'queue {self.settings.name!r} has no periodic entry {name!r}')
        return Record(name, raw)

    async def _now(self) -> int:
        seconds, micro = await self.link.send('TIME')
        return int(seconds) * 1000 + int(micro) // 1000


def _text(b: bytes) -> str:
    return b.decode('utf-8', 'surrogateescape')


def _conflict(name: str) -> DelayedError:
    return DelayedError(f'periodic entry {name!r}: others change it at the same time; try again')
