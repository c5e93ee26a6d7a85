"""Questions to Redis about one task."""

from __future__ import annotations

import msgpack

from .errors import DelayedError, EndedError, NoIdError, NotArchivedError
from .info import Found, Progress, State, TaskInfo, canceled, read
from .keys import Keys
from .link import Link
from .options import LOCK_LIFE
from .values import MAX_BYTES

_STATS_LIFE = 90 * 24 * 3600  # s
_PARDON_PAGE = 500
_PAGE = 200
_LARGEST = MAX_BYTES + 4096  # the most bytes of a message that Redis sends
_LARGEST_NOTE = 2 * MAX_BYTES + (64 << 10)  # the most bytes of the info of a task
_TRIES = 3  # tries, because another client may change the task at the same time


async def look(link: Link, keys: Keys, id: str, *, message: bool = False) -> Found:
    """Reads what Redis knows about a task."""
    k = keys
    reply = await link.run(
        'look',
        [k.scheduled, k.retry, k.parked, k.archived, k.completed, k.tasks, k.info, k.results],
        [id, _LARGEST if message else 0, _LARGEST_NOTE],
    )
    return Found(reply)


async def aggregating(link: Link, keys: Keys, id: str) -> bytes | None:
    """Returns the message of a task that waits in a group. It reads one group after the other."""
    for group in await link.send('ZRANGE', keys.groups, '0', '-1'):
        first = 0
        while True:
            messages = await link.run('page', [keys.group.encode() + group], [first, _PAGE, _LARGEST])
            for m in messages:
                if isinstance(m, bytes) and read(m)[1].get('id') == id:
                    return bytes(m)
            if not messages:
                break
            first += len(messages)
    return None


class Asks:
    """What references ask, as coroutines."""

    __slots__ = ()

    _loose = False  # the message of the task does not carry the id, which names the task only in sets that hold ids

    def _place(self) -> tuple[Link, Keys, str]:
        """Returns the link and the keys of the task's queue, and its id."""
        raise NotImplementedError

    async def _state(self) -> State:
        """Asks Redis where the task is. The states are strings as well."""
        found = (await look(*self._place())).place()[0]
        if found is State.UNKNOWN and (await aggregating(*self._place())) is not None:
            return State.AGGREGATING
        return found

    async def _info(self) -> TaskInfo:
        """Asks Redis what it knows about the task."""
        *_, id = place = self._place()
        found = (await look(*place, message=True)).task(id)
        if found.state is State.UNKNOWN:
            message = await aggregating(*place)
            if message is not None:
                return TaskInfo(id, State.AGGREGATING, read(message)[0])
        return found

    async def _progress(self) -> Progress:
        """Asks Redis for the last progress that the task reported; zeros if it has reported none, or if Redis knows
        nothing about the task any more."""
        return (await self._info()).progress

    async def _cancel(self) -> None:
        """Cancels the task, wherever it is: a scheduled, retrying or parked task is removed, and a pending task never
        starts.

        The worker that has claimed a task is told, usually within milliseconds. Until then the task may still start,
        even after this method has returned; afterwards it does not start, or is told to end.

        Raises EndedError if the task is known to have ended. Redis knows nothing about most tasks that have ended; then
        this does nothing. Cancelling again changes nothing. Raises NoIdError if the task has no id, or has lost it.
        Workers of keakon's package and of go-delayed ignore cancellations.
        """
        link, k, id = self._place()
        while True:
            found = await look(link, k, id, message=True)
            if self._loose and found.message is None:
                raise NoIdError(
                    f'task {id} is not scheduled any more, and its message, a Python task of a legacy queue, does not '
                    'carry the id'
                )
            keep, note, lock = canceled(found.message, found.now) if found.message is not None else (0, b'', '')
            became = await link.run(
                'cancel',
                [
                    k.revoked, k.control, k.scheduled, k.retry, k.parked, k.archived, k.completed, k.tasks, k.info,
                    k.results, k.locks, k.stats_of(found.now / 1000),
                ],
                [
                    id, LOCK_LIFE, keep, note, k.ended(id), k.signals, _STATS_LIFE, _PARDON_PAGE,
                    '1' if found.message is not None or found.size else '0', lock,
                ],
            )  # fmt: skip
            if became == 0:
                raise EndedError(f'task {id} has ended, and cannot be cancelled')
            if became != 3:
                return

    async def _delete(self) -> None:
        """Deletes an archived or completed task and everything that is kept of it. Raises NotArchivedError if it is
        neither."""
        link, k, id = self._place()
        if not (await link.run('delete', [k.archived, k.tasks, k.info, k.completed, k.results], ['', id])):
            raise NotArchivedError(f'task {id} is neither archived nor completed: ask for its state')

    async def _run_again(self) -> None:
        """Makes an archived task pending again, with all its retries, as if it had never failed.

        Raises NotArchivedError if the task is not archived.
        """
        link, k, id = self._place()
        for _ in range(_TRIES):
            found = await look(link, k, id, message=True)
            if found.size and found.archived is not None:
                raise DelayedError(
                    f'task {id} cannot run again: expected a message of at most {_LARGEST} bytes, found one of '
                    f'{found.size}; delete it'
                )
            if found.message is None or found.archived is None:
                raise NotArchivedError(f'task {id} is not archived: ask for its state')
            own_id, new, own = anew(id, found.message, found.now)
            answers = await link.run(
                'rerun',
                [k.archived, k.tasks, k.info, k.list, k.noti, k.revoked, k.locks],
                [LOCK_LIFE, id, own_id, found.message, new, '1' if own else '0'],
            )
            if answers[0] == 1:
                return
        raise DelayedError(f'task {id}: others change it at the same time; try again')


def anew(name: str, old: bytes, now: int) -> tuple[str, bytes, bool]:
    """Returns the id and the message of an archived task that is to run again, and whether the message carries the id.

    The bytes of the message stay the same, except those of meta.
    """
    _, meta = read(old)
    if not meta:
        return name, old, False
    id = meta.get('id', name)
    own = bool(meta.get('uk'))
    gone = {'rt', 'd', 'da', 'al', 'ff', 'du'} | {
        key for key in ('dl', 'xp', 'ru') if isinstance(meta.get(key), int) and meta[key] <= now
    }
    if not gone & meta.keys():
        return id, old, own
    unpacker = msgpack.Unpacker(strict_map_key=False, max_buffer_size=len(old) + 1)
    unpacker.feed(old)
    for _ in range(unpacker.read_array_header() - 1):
        unpacker.skip()
    kept = {k: v for k, v in meta.items() if k not in gone}
    if 'ff' in meta or 'du' in meta:
        kept['du'] = max(meta.get('du', 0), now)
    return id, old[: unpacker.tell()] + bytes(msgpack.packb(kept)), own
