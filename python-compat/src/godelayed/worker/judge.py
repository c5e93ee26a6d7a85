"""Decides from how a call ended what happens to its task."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from ..calls import new_id
from ..info import lock_of
from ..times import Seconds, milliseconds
from . import failures, info
from .finish import ARCHIVE, CANCEL, COMPLETE, DEATH, EXPIRED, FAILED, PARK, RELEASE, RETRY, SNOOZE, End
from .lane import Claim
from .lines import Lines
from .message import Message, MessageError
from .skim import WORKER
from .store import Death, Verdict

logger = logging.getLogger('godelayed.worker')

MAX_DEATHS = 3  # deaths alone that archive a task
DEATHS_LIFE = 72 * 3600  # seconds for which a death counts
PARKED_LIFE = 7 * 24 * 3600 * 1000  # ms
_RETRY_FIRST, _RETRY_MOST = 5_000, 6 * 3600 * 1000  # ms


def default_backoff(retried: int) -> int:
    """Returns how many ms a task that was retried this often waits: 5 s, doubled each time, at most 6 h, ± 25 %."""
    d = min(_RETRY_FIRST << max(retried, 0), _RETRY_MOST) if retried < 13 else _RETRY_MOST
    return int(d * random.uniform(0.75, 1.25))


@dataclass
class Ended:
    """How a call of a function ended."""

    ok: bool = True
    result: bytes | None = None  # packed; None: there is none, or it is not kept
    fault: str = ''  # why the result cannot be kept
    says: str = ''  # what the function raised: discard, drop, retry or snooze; '' if none of these; release: see Pool
    wait: int = 0  # ms
    error: str = ''
    stack: str = ''
    arguments: bool = False  # the arguments do not fit the function
    interrupted: str = ''  # why it was told to end or was killed: timeout, canceled, lost or stopping


DONE = Ended()


@dataclass
class Rules:
    """The settings of a worker's tasks that neither they nor their function give. Times are ms."""

    max_retry: int = 25
    backoff: Callable[[int], Seconds] | None = None
    timeout: int = 0


class Judge:
    """Decides how claims end."""

    def __init__(self, worker: str, rules: Rules) -> None:
        self.worker = worker
        self.rules = rules
        self.lines = Lines()  # about tasks that are not run here

    def limit(self, c: Claim, now: int) -> int:
        """Returns how long a task may run in ms, 0 for without a limit.

        The call's timeout comes first, then the function's, then the worker's; a deadline shortens it.
        """
        meta = c.message.meta
        d = int(meta.get('to') or c.function.timeout or self.rules.timeout)
        deadline = meta.get('dl')
        if deadline:
            left = max(1, deadline - now)
            d = min(d, left) if d else left
        return d

    def stale(self, c: Claim, now: int) -> End | None:
        """Returns the end of a task that it is too late to start, or None."""
        meta = c.message.meta
        at, why = 0, ''
        for key, text in (('xp', 'its TTL ended'), ('dl', 'its deadline was'), ('ru', 'its retry_until was')):
            end = meta.get(key, 0)
            if end and now >= end and (key != 'ru' or meta.get('ff')):
                at, why = end, text
                break
        else:
            return None
        id = c.message.id or new_id()
        text = f'it did not start in time: {why} at {_moment(at)}'
        logger.warning('queue %s: %s (%s): archived: %s', c.lane.name, c.message.path, id, text)
        fields = info.encode(
            reason='expired',
            at=now,
            first=meta.get('ff'),
            function=c.message.path,
            error=text,
            worker=self.worker,
            attempts=c.message.retried,
            deaths=c.message.deaths,
        )
        return End(c, ARCHIVE, EXPIRED, 0, id, c.raw, fields)

    def undecodable(self, c: Claim, error: Exception) -> End:
        """Returns the end of a claim whose bytes are not a message. They are archived unchanged."""
        return self._unread(c, 'undecodable', str(error))

    def too_large(self, c: Claim) -> End:
        """Returns the end of a claim whose message is too large to be read. The message stays in Redis."""
        return self._unread(c, 'too large', too_large(c.size))

    def _unread(self, c: Claim, reason: str, text: str) -> End:
        id = new_id()
        say_archived(self.lines, c.lane.name, id, reason, text)
        fields = info.encode(reason=reason, at=c.lane.now(), error=text, worker=self.worker)
        return End(c, ARCHIVE, (), 0, id, b'', fields)

    def park(self, c: Claim, reason: str) -> End:
        """Returns the end of a claim whose task must wait for a worker that knows its function."""
        id = c.message.id or new_id()
        queue, path = c.lane.name, c.message.path
        text = 'queue %s: %s (%s): parked, as this worker cannot run it (%s)'
        self.lines.say((queue, reason, path), logging.WARNING, text, queue, path, id, reason)
        fields = info.encode(reason=reason, at=c.lane.now(), function=path, worker=self.worker)
        return End(c, PARK, (), PARKED_LIFE, id, c.raw, fields)

    def complete(self, c: Claim, ended: Ended, began: int) -> End:
        """Returns the end of a claim whose task has succeeded and leaves something behind."""
        m = c.message
        if ended.fault:
            # The function has done its work, and running it again would not make its result fit.
            logger.error(
                'queue %s: %s (%s): done, but its result cannot be kept: %s', c.lane.name, m.path, m.id, ended.fault
            )
        return self._leave(
            c,
            COMPLETE,
            reason='completed',
            began=began,
            attempts=m.retried + 1,
            error=ended.fault,
            result=ended.result,
        )

    def _leave(self, c: Claim, kind: int, **fields: object) -> End:
        m = c.message
        e = End(c, kind, id=m.id)
        if not m.keep or not m.id:
            return e
        e.wait = m.keep
        e.info = info.encode(
            at=c.lane.now(),
            function=m.path,
            worker=self.worker,
            deaths=m.deaths,
            enqueued=m.meta.get('at'),
            message=c.raw if m.meta.get('rn') else None,
            **_report(c),
            **fields,
        )
        return e

    def canceled(self, c: Claim, certain: bool = False) -> End:
        """Returns the end of a claim whose task was cancelled."""
        e = self._leave(c, CANCEL, reason='canceled', attempts=c.message.retried)
        e.certain = certain
        return e

    def cancellation(self, c: Claim, certain: bool = False) -> End:
        """Is canceled for a worker that finds the cancellation itself, and logs it."""
        logger.info('queue %s: %s (%s): cancelled', c.lane.name, c.message.path, c.message.id)
        return self.canceled(c, certain)

    def death(self, c: Claim, alone: bool) -> End:
        """Returns the end of a claim whose process died with it in hand. The death counts like that of a whole worker.

        alone: no other processes died at the same time.
        """
        return End(c, DEATH, verdict=verdict(c.token, c.raw, Death(certain=alone, worker=self.worker), c.lane.now()))

    def failed(self, c: Claim, ended: Ended, stopping: bool) -> End | None:
        """Decides what happens to a task that has raised. None: it must end as if it had succeeded."""
        m = c.message
        if ended.says == 'release' or stopping and (ended.interrupted == 'stopping' or ended.says in ('', 'retry')):
            return End(c, RELEASE)  # it was told to stop: this counts neither as a retry nor as a death
        now = c.lane.now()
        attempt = m.retried + 1
        name = f'queue {c.lane.name}: {m.path} ({m.id or "no id"}), attempt {attempt}'
        told = {'queue': c.lane.name, 'function': m.path, 'id': m.id, 'attempt': attempt, 'traceback': ended.stack}
        fields: dict[str, object] = {
            'reason': 'failed',
            'at': now,
            'function': m.path,
            'error': ended.error,
            'stack': ended.stack,
            'worker': self.worker,
            'attempts': attempt,
            'deaths': m.deaths,
            **_report(c),
        }
        id = m.id or new_id()
        if ended.says == 'drop':
            logger.info('%s: dropped, as it said: %s', name, ended.error)
            return self._leave(c, COMPLETE, reason='dropped', error=ended.error, attempts=attempt) if c.leaves else None
        if ended.says == 'snooze':
            fields |= {'reason': 'snoozed', 'error': '', 'stack': ''}  # it has not failed
            raw = m.with_meta(du=now + ended.wait) if m.extended else c.raw
            return End(c, SNOOZE, (), ended.wait, id, raw, info.encode(**fields))
        if ended.arguments:
            # The same bytes never fit, however often the task is tried.
            fields['reason'] = 'arguments'
            text = '%s: archived: its arguments do not fit the function: %s'
            logger.error(text, name, ended.error, extra=told)
            return End(c, ARCHIVE, FAILED, 0, id, c.raw, info.encode(**fields))
        first = m.meta.get('ff') or now
        fields['first'] = first
        changes = {'ff': first} if m.meta.get('id') else {'id': id, 'ff': first}
        if m.extended:
            changes['er'] = failures.add(m.meta.get('er'), attempt, now, self.worker, ended.error, ended.stack)

        def archive(why: str) -> End:
            logger.error('%s: archived: %s: %s', name, why, ended.error, extra=told)
            raw = m.with_meta(**changes) if m.extended else c.raw
            return End(c, ARCHIVE, FAILED, 0, id, raw, info.encode(**fields))

        if ended.says == 'discard':
            return archive('it discarded itself')
        if ended.interrupted == 'timeout' and c.function.archive_on_timeout:
            return archive('it took too long')
        if not m.meta.get('ru') and not self._may_retry(c):
            return archive('it failed and no retries are left')
        wait = ended.wait if ended.says == 'retry' else self._delay(c)
        start = now + wait
        if any(m.meta.get(key) and start >= m.meta[key] for key in ('ru', 'dl', 'xp')):
            return archive('it failed and there is no time left for another try')
        raw = (
            m.with_meta(**changes, rt=attempt, du=start)
            if m.extended
            else c.raw
            if m.retry < 0
            else m.with_retry(m.retry - 1)
        )
        logger.warning('%s: failed and is tried again in %.1f s: %s', name, wait / 1000, ended.error, extra=told)
        return End(c, RETRY, FAILED, wait, id, raw, info.encode(**fields))

    def _may_retry(self, c: Claim) -> bool:
        """Returns whether a failed task may be tried again. The call's setting comes first, then the function's, then
        the worker's."""
        m = c.message
        if not m.extended:
            return m.retry != 0  # plain messages of keakon's package hold the retries left
        most = m.meta.get('mr')
        if most is None and m.retry != 0:
            most = m.retry
        if most is None:
            most = c.function.retry
        if most is None:
            most = self.rules.max_retry
        return most < 0 or m.retried < most

    def _delay(self, c: Claim) -> int:
        """Returns how many ms a failed task waits before it is tried again."""
        m, f = c.message, c.function
        retried = m.retried
        delays = m.meta.get('rd')
        if delays:
            d = int(delays[min(retried, len(delays) - 1)])
        elif f.delays:
            d = f.delays[min(retried, len(f.delays) - 1)]
        else:
            d = self._ask(f.backoff or self.rules.backoff, retried)
        longest = m.meta.get('rc') or f.max_backoff
        return max(0, min(d, longest) if longest else d)

    def _ask(self, backoff: Callable[[int], Seconds] | None, retried: int) -> int:
        if backoff is not None:
            try:
                return milliseconds(backoff(retried), 'backoff')
            except Exception:
                logger.exception('backoff(%d) failed; the default holds', retried)
        return default_backoff(retried)


def say_archived(lines: Lines, queue: str, id: str, reason: str, text: str) -> None:
    """Logs that a message was archived without being read."""
    lines.say((queue, reason, ''), logging.ERROR, 'queue %s: message archived as %s: %s', queue, id, text)


def too_large(size: int) -> str:
    """Returns the error text for a message that is too large to be read."""
    return f'expected a message of at most {WORKER.size} bytes, found one of {size}'


def verdict(token: str, raw: bytes | int, death: Death, now: int) -> Verdict:
    """Decides what happens to a claim whose worker died. It counts the death in the message, if the message can hold
    it.

    Only deaths alone bring a task closer to the archive. now is the time by Redis's clock in ms.
    """
    if isinstance(raw, int):
        id, text = new_id(), too_large(raw)
        fields = info.encode(reason='too large', at=now, error=text, worker=death.worker)
        return Verdict(token, raw, b'', 'archive', id, fields)
    text = f'{MAX_DEATHS} times its worker, or the process that ran it, died while it had nothing but this task in hand'
    m: Message | None = None
    with contextlib.suppress(MessageError):
        m = Message(raw)
    id = (m.id if m else '') or new_id()
    path = m.path if m else ''
    awaited = m is not None and m.keep > 0
    lock = lock_of(m.meta) if m else ''
    if death.stopped or death.alone and death.alone != token:
        # The task has not died with this worker, which had stopped or had not started the task.
        return Verdict(token, raw, raw, 'requeue', id, b'', '', awaited, lock)
    alone = death.certain or bool(death.alone)
    if m is None or m.python and not m.extended:
        # We must not change this message, so a hash in Redis holds the count. No worker can see that the task is a
        # suspect either, and so none runs it alone on purpose.
        fields = info.encode(reason='deaths', at=now, function=path, error=text, deaths=MAX_DEATHS, worker=death.worker)
        action = 'alone' if alone or death.sole else 'count'
        return Verdict(token, raw, raw, action, id, fields, hashlib.sha1(raw).hexdigest(), awaited, lock)
    deaths, died_alone = (m.deaths, m.meta.get('al', 0)) if now - m.meta.get('da', 0) < DEATHS_LIFE * 1000 else (0, 0)
    deaths, died_alone = deaths + 1, died_alone + alone
    renewed = m.with_meta(d=deaths, da=now, al=died_alone)
    fields = info.encode(reason='deaths', at=now, function=path, error=text, deaths=deaths, worker=death.worker)
    if died_alone >= MAX_DEATHS:
        logger.error(
            '%s (%s): archived: its worker died too often with nothing else in hand (%d deaths)', path, id, deaths
        )
        return Verdict(token, raw, renewed, 'archive', id, fields, '', awaited, lock)
    return Verdict(token, raw, renewed, 'requeue', id, fields, '', awaited, lock)


def _report(c: Claim) -> dict[str, object]:
    if c.report is None:
        return {}
    done, total, note = c.report
    return {'done': done, 'total': total, 'note': note}


def _moment(ms: int) -> str:
    return time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(ms / 1000)) + f'.{ms % 1000:03d}Z'
