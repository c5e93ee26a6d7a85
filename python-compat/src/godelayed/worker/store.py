"""One queue in Redis: each method runs one script or one read, and only this module and slot know the keys."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..cluster import check_tag
from ..keys import Keys
from ..kinds import is_list
from ..producer import MAX_CALL_BYTES
from .link import Link, ReplyError, Source, size_of
from .skim import WORKER

if TYPE_CHECKING:
    from .finish import End

STATS_LIFE = 90 * 24 * 60 * 60  # seconds that Redis keeps the counters of a day
MAX_CLAIM = 1000  # tasks of one claim
_MAX_INFO = 32 << 10  # bytes to read of each task's info where many are listed
_LIVES_MOST = 250  # heartbeats that one script reads
MAX_TOKENS = 500  # claims that one script ends or gives back
MAX_SHELVED = 100  # tasks that one script stores in a set
MAX_UNPARKED = 100  # parked tasks that one script looks at
_LATENESS_LIFE = 90 * 24 * 3600  # seconds for which counts of late tasks are kept
REVOKED_MOST = 1000  # ids of cancelled tasks that a worker keeps in memory


@dataclasses.dataclass
class Acked:
    """Claims whose tasks are done, for the scripts claim and ack.

    pulse is the value of the heartbeat under which all of them existed last.
    """

    tokens: list[str] = dataclasses.field(default_factory=list[str])
    batches: list[int] = dataclasses.field(default_factory=list[int])
    pulse: str = ''

    def answers(self, reply: Any) -> list[int] | None:
        """Converts the script's reply about these claims; None: all of them existed."""
        if isinstance(reply, int):
            return None
        return _answers(reply, len(self.tokens))


@dataclasses.dataclass
class Haul:
    """The result of a claim. status is 1; 0 without a heartbeat, -1 for a used batch, -2 for a paused queue."""

    status: int
    left: int = 0  # pending tasks; for parked tasks, how many ids the script has looked at
    stood: list[int] | None = None
    version: int = 0
    messages: Sequence[bytes | int] = ()  # a size stands for a too large message


@dataclasses.dataclass
class Death:
    """What is known about how a worker, or one of its processes, died."""

    stopped: bool = False  # it was stopping in good order, so no task has died with it
    alone: str = ''  # the token of the claim that ran with nothing else in hand; '' if none did
    sole: bool = False  # it held only one claim
    certain: bool = False  # it ran its claim alone for certain, as each process and each legacy worker does
    worker: str = ''  # its id; '' if it was a legacy worker


@dataclasses.dataclass
class Verdict:
    """What happens to the claim of a dead worker."""

    token: str
    message: bytes | int  # its size if it is too large
    renewed: bytes  # empty: unchanged
    action: str  # requeue, archive, count or alone
    id: str
    info: bytes
    digest: str = ''  # its field in the deaths hash, for count and alone
    awaited: bool = False
    lock: str = ''  # the lock that the message names


@dataclasses.dataclass
class Control:
    """What the workers of a queue are told. version 0: nothing was ever said."""

    version: int = 0
    paused: bool = False
    restart: str = ''
    weight: int = 0
    order: str = ''

    def restarted_after(self, ms: int) -> bool:
        """Returns whether workers were told to restart after a time; 0 is one that has not come yet."""
        return _number(self.restart) > ms > 0


def _answers(reply: Any, n: int) -> list[int]:
    if not is_list(reply) or len(reply) != n:
        raise ReplyError(f'expected {n} answers, found {size_of(reply)}')
    return reply


def text_of(v: Any) -> str:
    """Returns a string from Redis as text, '' for none."""
    return v.decode('utf-8', 'surrogateescape') if isinstance(v, bytes) else ('' if v is None else str(v))


def _number(v: Any) -> int:
    try:
        return int(text_of(v) or 0)
    except ValueError:
        return 0


class Store:
    """A queue. Each call uses the link that it is given, which belongs to the calling thread."""

    def __init__(self, source: Source, prefix: str, name: str, worker: str) -> None:
        self.name = name
        self.prefix = prefix
        self.worker = worker
        self.keys = Keys(name, prefix)
        check_tag(source.client, self.keys)
        self.source = source.of(self.keys.list)
        self.skew = 0.0  # Redis's clock minus ours, in seconds
        k = self.keys
        self._mine = [k.processing + worker, k.claims + worker]

    def link(self) -> Link:
        """Returns a new link."""
        return Link(self.source)

    def now(self) -> int:
        """Returns Redis's time in ms."""
        return int((time.time() + self.skew) * 1000)

    @property
    def _stats(self) -> str:
        """Returns the key of today's counters, by Redis's clock."""
        return self.keys.stats_of(time.time() + self.skew)

    def _ended(self, id: str, awaited: bool) -> str:
        """Returns the channel on which to announce the end of a task, '' if nobody waits for it."""
        return self.keys.ended(id) if awaited else ''

    def claim(
        self,
        link: Link,
        batch: int,
        most: int,
        held: int,
        legacy: bool,
        mend: bool,
        ended: Acked,
        suspects: bool = False,
    ) -> Haul:
        """Ends claims and takes pending tasks, or suspects.

        It must never be sent again after an error for which may_have_run is true.
        """
        k = self.keys
        reply = link.run(
            'claim',
            [*k.pending(suspects), k.heartbeat + self.worker, *self._mine, self._stats, k.control],
            batch,
            min(most, MAX_CLAIM),
            held,
            WORKER.size,
            int(legacy),
            int(mend),
            STATS_LIFE,
            ended.pulse,
            len(ended.batches),
            *ended.batches,
            *ended.tokens,
        )
        if not is_list(reply) or len(reply) < 3:
            raise ReplyError(f'claim: expected three values or more, found {size_of(reply)}')
        status, left, stood = reply[0], reply[1], ended.answers(reply[2])
        if status == 1:
            return Haul(1, left, stood, 0, reply[3:])
        if status == 2:
            return Haul(1, left, stood, _number(reply[3]), reply[4:])
        return Haul(status, 0, stood)

    def ack(self, link: Link, ended: Acked, lost: int) -> list[int] | None:
        """Ends claims whose tasks are done, and adds lost to the day's count of lost claims."""
        k = self.keys
        reply = link.run(
            'ack',
            [*self._mine, self._stats, k.heartbeat + self.worker],
            STATS_LIFE,
            lost,
            ended.pulse,
            len(ended.batches),
            *ended.batches,
            *ended.tokens,
        )
        return ended.answers(reply)

    def release(
        self,
        link: Link,
        batches: Sequence[int],
        tokens: Sequence[str],
        to: Store | None = None,
        front: bool = True,
        suspects: bool = False,
    ) -> list[int]:
        """Gives claimed messages back unchanged: to the front or the end of a queue, or of its suspects."""
        keys = [*self._mine, *(to or self).keys.pending(suspects)]
        reply = link.run('release', keys, 'front' if front else 'back', len(batches), *batches, *tokens)
        return _answers(reply, len(tokens))

    def shelve(
        self,
        link: Link,
        batches: Sequence[int],
        shelf: str,
        most: int,
        counters: Sequence[str],
        ends: Sequence[End],
    ) -> list[int]:
        """Stores tasks in the set scheduled, retry, parked or archived. Those that are to be scheduled or retried, and
        wait 0 ms, become pending at once.

        An answer of 2 means that the task was cancelled and the claim still exists.
        """
        k = self.keys
        workers = k.signals if shelf == 'parked' else ''
        args: list[Any] = [
            STATS_LIFE,
            most,
            int(shelf in ('retry', 'scheduled')),
            int(shelf == 'archived'),
            workers,
            len(counters),
            *counters,
        ]
        args += [len(batches), *batches]
        for e in ends:
            told = f'parked {e.claim.message.path}' if workers else self._ended(e.id, e.awaited)
            args += [e.claim.token, e.id, e.wait, e.message, e.info, told, e.claim.lock]
        keys = [
            *self._mine, k.tasks, getattr(k, shelf), k.info, self._stats, k.wake, k.locks, k.revoked, *k.pending(False),
        ]  # fmt: skip
        return _answers(link.run('shelve', keys, *args), len(ends))

    def complete(self, link: Link, batches: Sequence[int], ends: Sequence[End], canceled: bool) -> list[int]:
        """Ends the claims of tasks that were cancelled, or that have succeeded and leave something behind. An answer of
        2 means that the task is not cancelled any more and the claim still exists."""
        k = self.keys
        keys = [*self._mine, k.completed, k.results, k.locks, self._stats, k.revoked]
        args: list[Any] = [STATS_LIFE, len(batches), *batches]
        for e in ends:
            how = ('canceled' if e.certain else 'revoked') if canceled else 'processed'
            args += [e.claim.token, e.id, e.wait, e.info, e.claim.lock, self._ended(e.id, e.awaited), how]
        return _answers(link.run('complete', keys, *args), len(ends))

    def progress(self, link: Link, token: str, id: str, report: bytes) -> bool:
        """Stores the progress of an active task; an empty report deletes it. Returns whether the claim still exists."""
        k = self.keys
        return bool(link.run('progress', [k.processing + self.worker, k.completed, k.results], token, id, report))

    def unlock(self, link: Link, id: str, lock: str, left: bool) -> int:
        """Frees the lock of a task that starts, or, with left, has left the queue. -1: it must not start; 0: none is
        left."""
        k = self.keys
        return int(link.run('unlock', [k.locks, k.revoked], id, lock, int(left)))

    def register(self, link: Link, life: int, value: str) -> list[str]:
        """Registers the worker for life ms, and returns the tokens of its claims that still exist."""
        k = self.keys
        keys = [k.heartbeat + self.worker, k.workers, k.processing + self.worker]
        return [text_of(t) for t in link.run('register', keys, life, self.worker, value)]

    def publish(self, link: Link, what: str, text: bytes) -> bool:
        """Notes the functions of this worker, or with what = ' status' what it does. False: it is not registered."""
        k = self.keys
        return bool(link.run('publish', [k.heartbeat + self.worker, k.functions], self.worker + what, text))

    def unregister(self, link: Link) -> bool:
        """Removes the worker; False means that it still holds claims."""
        return bool(link.run('forget', self._worker_keys(self.worker), self.worker, 1))

    def forget(self, link: Link, worker: str) -> bool:
        """Removes a dead worker that holds no more claims."""
        return bool(link.run('forget', self._worker_keys(worker), worker, 0))

    def _worker_keys(self, worker: str) -> list[str]:
        k = self.keys
        return [k.heartbeat + worker, k.workers, k.processing + worker, k.claims + worker, k.control, k.functions]

    def mark(self, link: Link, note: str, value: str) -> None:
        """Notes what this worker's death would mean for its claims: for 'alone', value is the token of one of them, for
        'stopped' it is 1. An empty value deletes the note."""
        link.run('mark', [self.keys.claims + self.worker], note, value)

    def rewait(self, link: Link, life: int) -> None:
        """Ends the wait of this worker. Redis keeps the order for life ms."""
        link.run('rewait', [self.keys.rewait + self.worker], life)

    def tokens(self, link: Link) -> list[str]:
        """Returns the tokens of this worker's claims."""
        return [text_of(t) for t in link.do('HKEYS', self.keys.processing + self.worker)]

    def move(self, link: Link, shelf: str, most: int) -> tuple[int, list[tuple[str, int]]]:
        """Makes due tasks pending and returns the ms until the next one is due, negative for none.

        It also returns the ids and sizes of those that are too large, which stay where they are.
        """
        k = self.keys
        keys = [getattr(k, shelf), k.tasks, k.info, k.list, k.noti, k.metrics + 'late']
        reply = link.run('move', keys, most, MAX_CALL_BYTES, WORKER.size, _LATENESS_LIFE)
        return int(reply[1]), [(text_of(reply[i]), int(reply[i + 1])) for i in range(2, len(reply) - 1, 2)]

    def unpark(self, link: Link, batch: int, most: int, ids: Sequence[str]) -> Haul:
        """Claims parked tasks; left is how many of the ids the script has looked at.

        Like claim, it must never be sent again after a lost answer.
        """
        k = self.keys
        keys = [k.parked, k.tasks, k.info, k.heartbeat + self.worker, *self._mine, k.control]
        reply = link.run('unpark', keys, batch, min(most, MAX_UNPARKED), WORKER.size, *ids)
        if not is_list(reply) or len(reply) < 3:
            raise ReplyError(f'unpark: expected three values or more, found {size_of(reply)}')
        return Haul(reply[0], reply[1], None, reply[2], reply[3:])

    def parked_page(self, link: Link, offset: int, n: int) -> list[tuple[str, bytes | None]]:
        """Reads a page of parked tasks, in the order of parking. The first page has those that were parked last."""
        return self._infos(link, link.do('ZRANGE', self.keys.parked, -offset - n, -offset - 1))

    def overdue_parked(self, link: Link, now: int, n: int) -> list[tuple[str, bytes | None]]:
        """Reads the parked tasks whose time was over at now, in ms."""
        return self._infos(link, link.do('ZRANGEBYSCORE', self.keys.parked, '-inf', now, 'LIMIT', 0, n))

    def _infos(self, link: Link, ids: list[bytes]) -> list[tuple[str, bytes | None]]:
        if not ids:
            return []
        infos: list[bytes | None] = []
        while len(infos) < len(ids):
            some = self._fields(link, self.keys.info, [text_of(i) for i in ids[len(infos) :]], _MAX_INFO)
            infos += [v if isinstance(v, bytes) else None for v in some]
        return list(zip([text_of(i) for i in ids], infos))

    def messages(self, link: Link, ids: Sequence[str]) -> list[bytes | int | None]:
        """Reads the messages of the first of these tasks, which are in a set, as _fields does."""
        return self._fields(link, self.keys.tasks, ids, WORKER.size)

    def _fields(self, link: Link, hash: str, fields: Sequence[str], most: int) -> list[bytes | int | None]:
        """Reads the first of these fields of a hash, as many as fit into one call, and at least one.

        Of values of more than most bytes it returns the size.
        """
        reply = link.run('fields', [hash], most, MAX_CALL_BYTES, *fields)
        if not is_list(reply) or not 1 <= len(reply) <= len(fields):
            raise ReplyError(f'fields: expected 1 to {len(fields)} values, found {size_of(reply)}')
        return reply

    def control(self, link: Link) -> Control:
        """Reads the control hash, with the order for this worker."""
        v = link.do('HMGET', self.keys.control, 'version', 'paused', 'restart', 'weight', 'worker:' + self.worker)
        return Control(_number(v[0]), bool(v[1]), text_of(v[2]), _number(v[3]), text_of(v[4]))

    def revoked(self, link: Link) -> tuple[list[str], bool]:
        """Returns ids of cancelled tasks, and whether these are all of them."""
        ids = [text_of(i) for i in link.do('ZRANGE', self.keys.revoked, 0, REVOKED_MOST)]
        return ids[:REVOKED_MOST], len(ids) <= REVOKED_MOST

    def are_revoked(self, link: Link, ids: Sequence[str]) -> list[bool]:
        """Returns for each id whether its task was cancelled."""
        return [v is not None for v in link.do('ZMSCORE', self.keys.revoked, *ids)]

    def mode(self, link: Link) -> str:
        """Returns the form of Python tasks on this queue, '' if none is set yet."""
        return text_of(link.do('GET', self.keys.mode))

    def sweep(
        self, link: Link, liveness: str, hash: str, limits: Sequence[int], verdicts: Sequence[Verdict]
    ) -> tuple[int, int]:
        """Takes claims from a dead worker, the last ones claimed first. Returns (-1, 0) if the worker lives.

        limits: s that deaths count, deaths alone that archive, ms that an archived task is kept, most archived tasks.
        """
        k = self.keys
        args: list[Any] = [STATS_LIFE, *limits]
        for v in verdicts:
            told = self._ended(v.id, v.awaited)
            args += [v.token, v.message, v.renewed, v.action, v.id, v.info, v.digest, told, v.lock]
        keys = [
            liveness,
            hash,
            k.list,
            k.noti,
            k.tasks,
            k.archived,
            k.info,
            k.deaths,
            self._stats,
            k.locks,
            k.completed,
            k.results,
        ]
        reply = link.run('sweep', [*keys, k.revoked], *args)
        return int(reply[0]), int(reply[1])

    def claim_tokens(self, link: Link, hash: str, n: int) -> tuple[list[str], int]:
        """Returns the tokens of a processing hash, or some n of them if there are more, and their total number."""
        total = int(link.do('HLEN', hash))
        if total == 0:
            return [], 0
        return [text_of(t) for t in link.do('HRANDFIELD', hash, n)], total

    def claims(self, link: Link, hash: str, tokens: Sequence[str]) -> tuple[list[tuple[str, bytes | int]], int]:
        """Reads the first of the claims with these tokens, as many as fit into one call, and returns those that exist
        with the number of tokens that it has read. For a message that is too large it returns the size."""
        found = self._fields(link, hash, tokens, WORKER.size)
        return [(t, m) for t, m in zip(tokens, found) if m is not None], len(found)

    def death_of(self, link: Link, worker: str, hash: str) -> Death:
        """Reads what a worker has noted about its own death, for its claims in hash."""
        alone, stopped = link.do('HMGET', self.keys.claims + worker, 'alone', 'stopped')
        if alone is not None and not link.do('HEXISTS', hash, alone):
            alone = None  # that claim has ended
        return Death(stopped=stopped is not None, alone=text_of(alone))

    def lifetimes(self, link: Link, workers: Sequence[str]) -> list[float]:
        """Returns for each worker how many seconds its heartbeat lasts unless it is renewed; negative if it does not
        exist."""
        lives: list[int] = []
        for i in range(0, len(workers), _LIVES_MOST):
            keys = [self.keys.heartbeat + w for w in workers[i : i + _LIVES_MOST]]
            lives += _answers(link.run('lives', keys), len(keys))
        return [ms / 1000 for ms in lives]

    def scan_workers(self, link: Link, page: int) -> list[str]:
        """Returns the ids of the queue's workers, however many, of which it reads about page at a time."""
        workers: set[str] = set()  # a scan may return some twice
        cursor: Any = 0
        while True:
            cursor, some = link.do('SSCAN', self.keys.workers, cursor, 'COUNT', page)
            workers.update(text_of(w) for w in some)
            if int(cursor) == 0:
                return sorted(workers)

    def repair(self, link: Link, n: int) -> int:
        """Repairs the notify list: removes surplus notifications, and adds at most n of those that are missing."""
        return int(link.run('repair', [self.keys.list, self.keys.noti], n)[2])

    def ages(self, link: Link) -> bool:
        """Returns whether the queue has anything that is deleted after some time."""
        k = self.keys
        return bool(link.do('EXISTS', k.archived, k.parked, k.completed, k.locks, k.revoked))

    def condemn(self, link: Link, shelf: str, keep: int, tasks: Sequence[tuple[str, bytes, str]]) -> int:
        """Archives, for keep ms, tasks that were parked for too long, or are due but too large.

        tasks are their ids, infos and locks ('' for none).
        """
        k = self.keys
        args: list[Any] = [STATS_LIFE, keep]
        for task in tasks:
            args += task
        return int(link.run('condemn', [getattr(k, shelf), k.archived, k.info, self._stats, k.locks], *args))

    def trim(self, link: Link, most: int, n: int) -> int:
        """Deletes at most n archived tasks that are too old or too many."""
        k = self.keys
        return int(link.run('trim', [k.archived, k.tasks, k.info, self._stats], STATS_LIFE, most, n))

    def expire(self, link: Link, n: int) -> int:
        """Deletes at most n completed tasks that were kept for long enough."""
        return int(link.run('expire', [self.keys.completed, self.keys.results], n))

    def lapse(self, link: Link, cursor: str, n: int) -> tuple[str, int, int]:
        """Looks at about n locks, deletes those that have expired, and returns where to go on, how many it has looked
        at, and how many it has deleted. The cursor is '0' at the beginning and after the last lock."""
        next_, looked, deleted = link.run('lapse', [self.keys.locks], cursor, n)
        return text_of(next_), int(looked), int(deleted)

    def pardon(self, link: Link, n: int) -> int:
        """Deletes at most n cancellations whose time is over."""
        return int(link.run('pardon', [self.keys.revoked, self.keys.control], n))
