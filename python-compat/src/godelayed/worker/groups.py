"""Groups: calls that are gathered and run as one. docs/PROTOCOL.md describes under Groups how the one call is made."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgpack

from ..calls import new_id
from ..kinds import is_dict, is_list
from ..locks import group_name
from ..values import MAX_BYTES, MAX_ELEMENTS
from .finish import End
from .lines import Lines, counted
from .link import Link, UnansweredError, UnreachableError
from .message import Message, MessageError
from .skim import WORKER
from .store import MAX_CLAIM_BYTES, SCRIPTS, Store, text_of

logger = logging.getLogger('godelayed.worker')

_LOAN = 3000  # ms for which one mover has a group exclusively
_RIPE = 16  # groups that a mover gets at a time
_ROUNDS = 100
_MOST_CALLS = 998  # calls that one fire makes pending
_HEADS = 32  # bytes for the headers of arrays and of the payload
_MAX_SIZE = 5_000  # calls of one group
# The limits of one group. They are lower than those of a message, because its head needs room.
_GROUP_BYTES = MAX_BYTES - (32 << 10)
_GROUP_VALUES = MAX_ELEMENTS - 512
_DEFAULT = [0, 60_000, 0, 1_000]


class Member:
    """A gathered call whose arguments are decoded. Only Go calls are gathered."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        m = self.message = Message(raw)
        if m.python or 'g' not in m.meta:
            raise MessageError('the message names no group')
        how: list[int] = m.meta.get('gp') or _DEFAULT
        self.fixed_n, self.grace, self.delay, self.size = how
        if not 1 <= self.size <= _MAX_SIZE:
            self.size = _MAX_SIZE
        self.fixed = self.list = b''
        self.count = self.values = self.before = self.bytes = 0
        self._split()
        self.group = group_name(self.message.path, self.message.meta['g'], self.fixed_n, self.fixed)

    def _split(self) -> None:
        b, has_n, fixed = self.message.payload or b'', 'n' in self.message.meta, self.fixed_n
        if fixed == 0 and b in (b'', b'\xc0'):
            return
        n, rest = _array(b)
        if n < 0:
            raise MessageError('expected arguments in an array')
        if has_n and n < fixed or not has_n and fixed > 0 and n != fixed + 1:
            raise MessageError(f'expected {fixed} arguments and a list, found {n}')
        end = 0
        for _ in range(fixed):
            end = _skip(rest, end)
        self.fixed, tail = rest[:end], rest[end:]
        self.before = _values(self.fixed)
        n -= fixed
        if not has_n and fixed > 0:
            if tail == b'\xc0':
                n, tail = 0, b''
            else:
                n, tail = _array(tail)
                if n < 0:
                    raise MessageError('expected a list as the last argument')
        self.list, self.count, self.bytes = tail, n, len(tail)
        self.values = _values(tail)


class _Bunch:
    """Members of one group that are combined into one call."""

    def __init__(self, m: Member) -> None:
        self.first = self.last = m
        self.size = self.count = self.values = 0
        self.list = b''

    def like(self, m: Member) -> bool:
        return m.group == self.first.group and m.fixed == self.first.fixed

    def fits(self, m: Member) -> bool:
        size = len(m.raw) + len(self.list) + len(self.first.message.id) + _HEADS
        return size <= MAX_BYTES and 2 + m.before + self.values + m.values <= MAX_ELEMENTS

    def add(self, m: Member) -> None:
        self.last = m
        self.size += 1
        self.list += m.list
        self.count += m.count
        self.values += m.values

    def call(self, now: int) -> bytes:
        """Returns the one call: with the id of the first member, and everything else from the last one."""
        m = self.last.message
        payload = _array_head(self.count) + self.list
        if self.last.fixed_n:
            payload = _array_head(self.last.fixed_n + 1) + self.last.fixed + payload
        meta = {k: v for k, v in m.meta.items() if k not in ('n', 'g', 'gp', 'rt', 'ff', 'du', 'er', 'd', 'da', 'al')}
        m.payload, m.meta = payload, meta
        return m.with_meta(id=self.first.message.id or new_id(), at=now)


def compose(raws: Sequence[bytes], size: int, now: int, canceled: set[str]) -> tuple[list[bytes], list[Member | None]]:
    """Makes calls of the first messages of a group, and returns them with their members, None for a message that is no
    member.

    A message that cannot be combined with others becomes a call of its own, unchanged. So does a cancelled member; no
    combined call contains it.
    """
    calls: list[bytes] = []
    members: list[Member | None] = []
    bunch: _Bunch | None = None
    for raw in raws:
        if len(calls) >= _MOST_CALLS:
            break
        try:
            m = Member(raw)
        except MessageError:
            members.append(None)
            if bunch is not None:
                calls.append(bunch.call(now))
                bunch = None
            calls.append(raw)
            continue
        if m.message.id in canceled:
            members.append(m)
            continue
        if bunch is not None and not bunch.like(m):
            calls.append(bunch.call(now))
            bunch = None
        if bunch is not None and (bunch.size == size or not bunch.fits(m)):
            break
        members.append(m)
        if bunch is None:
            bunch = _Bunch(m)
        bunch.add(m)
    if bunch is not None:
        calls.append(bunch.call(now))
    return calls, members


class Firing:
    """Makes the calls of a queue's groups that are due.

    No leader is needed: a script does nothing if another worker was faster.
    """

    def __init__(self, store: Store, lines: Lines) -> None:
        self.store = store
        self.lent: list[str] = []
        self._lines = lines

    def _cannot_fire(self, group: str, error: Exception) -> None:
        """Logs that a key of a group, or of its queue, is of the wrong type or malformed.

        The worker tries again with each call that joins a group.
        """
        queue = self.store.name

        def write(n: int) -> None:
            text = 'queue %s: the calls of group %s cannot be put together; trying again%s'
            logger.error(text, queue, group, counted(n), exc_info=error)

        self._lines.log((queue, 'group', ''), write)

    def fire(self, link: Link) -> int:
        """Fires the groups that are due and returns the ms until the next one is, negative for none."""
        k = self.store.keys
        for _ in range(_ROUNDS):
            next_ = -1
            while self.lent:
                try:
                    next_ = _sooner(next_, self._fire_group(link, self.lent[0]))
                except (UnreachableError, UnansweredError):
                    raise  # keep the group: this mover still has it on loan
                except Exception as e:  # a faulty group must not keep others waiting
                    self._cannot_fire(self.lent[0], e)
                self.lent.pop(0)
            reply = link.run(SCRIPTS['ripe'], [k.groups], _RIPE, _LOAN)
            self.lent = [text_of(g) for g in reply[1:]]
            next_ = _sooner(next_, reply[0])
            if not self.lent and reply[0] != 0:
                return next_
        return 0

    def _fire_group(self, link: Link, group: str) -> int:
        k = self.store.keys
        for _ in range(_ROUNDS):
            reply = link.run(
                SCRIPTS['peek'],
                [k.group + group, k.gathered, k.control],
                group,
                MAX_CLAIM_BYTES,
                _MAX_SIZE + 1,
                WORKER.size,
            )
            size, version = reply[0], reply[1]
            raws: list[Any] = reply[2:]
            large = 0
            if raws and isinstance(raws[0], int):
                large, raws = raws[0], []  # the first message is too large: the worker that claims it archives it
            canceled: set[str] = set()
            if version:
                canceled = self._canceled(link, raws)
            calls, members = compose(raws, size, time.time_ns() // 1_000_000, canceled)
            after = 0
            if len(members) < len(raws):
                try:
                    after = Member(raws[len(members)]).message.meta.get('at', 0)
                except MessageError:
                    after = 0
            n = 1 if large else len(members)
            known = [m for m in members if m is not None]
            stray = sum(len(raw) for raw, m in zip(raws, members) if m is None)
            done, due = link.run(
                SCRIPTS['fire'],
                [k.group + group, k.groups, k.gathered, k.list, k.noti, k.control],
                group,
                n,
                raws[0] if raws and n else b'',
                raws[n - 1] if raws and n else b'',
                sum(m.bytes for m in known) + stray + large,
                sum(m.values for m in known),
                after,
                _GROUP_BYTES,
                _GROUP_VALUES,
                version,
                *calls,
            )
            if done == 2:
                continue
            if done != 1:
                return -1  # another worker was faster
            gone = [m.message.id for m in known if m.message.id in canceled]
            if gone:
                self.store.forgive(link, gone)
            logger.debug('queue %s: %d calls of a group are pending as %d', self.store.name, n, len(calls))
            if due != 0:
                return int(due)
        return 0

    def _canceled(self, link: Link, raws: Sequence[bytes]) -> set[str]:
        ids: list[Any] = []
        for raw in raws:
            try:
                id = Message(raw).id
            except MessageError:
                continue
            if id:
                ids.append(id)
        found: set[str] = set()
        for i in range(0, len(ids), 1000):
            some = ids[i : i + 1000]
            found.update(id for id, yes in zip(some, self.store.are_revoked(link, some)) if yes)
        return found


def join(
    store: Store, link: Link, batches: Sequence[int], tokens: Sequence[str], members: Sequence[Member]
) -> list[int]:
    """Ends claims by adding their tasks, which were scheduled, to their group. All of them belong to one group."""
    k, first = store.keys, members[-1]
    args: list[Any] = [
        first.group,
        first.grace,
        first.delay,
        first.size,
        _GROUP_BYTES,
        _GROUP_VALUES,
        len(batches),
        *batches,
    ]
    for token, m in zip(tokens, members):
        args += [token, m.bytes, m.values]
    keys = [k.processing + store.worker, k.claims + store.worker, k.group + first.group, k.groups, k.gathered, k.wake]
    answers = link.run(SCRIPTS['join'], keys, *args)
    return [int(a) for a in answers]


def joiner_of(store: Store) -> Callable[[Link, list[int], list[End]], list[int]]:
    """Returns what ends claims of a queue by join."""

    def joins(link: Link, batches: list[int], ends: list[End]) -> list[int]:
        members = [Member(e.claim.raw) for e in ends]
        return join(store, link, batches, [e.claim.token for e in ends], members)

    return joins


def _sooner(a: int, b: int) -> int:
    return b if a < 0 or 0 <= b < a else a


def _array(b: bytes) -> tuple[int, bytes]:
    """Returns the length of an array and the bytes after its header; -1 if it is not an array."""
    if b and b[0] & 0xF0 == 0x90:
        return b[0] & 15, b[1:]
    if b[:1] == b'\xdc' and len(b) >= 3:
        return int.from_bytes(b[1:3], 'big'), b[3:]
    if b[:1] == b'\xdd' and len(b) >= 5:
        return int.from_bytes(b[1:5], 'big'), b[5:]
    return -1, b''


def _array_head(n: int) -> bytes:
    head: bytes = msgpack.Packer().pack_array_header(n)
    return head


def _skip(b: bytes, start: int) -> int:
    u = msgpack.Unpacker(max_buffer_size=2 * MAX_BYTES)
    u.feed(b[start:])
    try:
        u.skip()
    except Exception as e:
        raise MessageError(f'expected an argument, found none: {e}') from None
    return start + int(u.tell())


def _values(b: bytes) -> int:
    """Counts values, including those inside others."""
    u = msgpack.Unpacker(max_buffer_size=2 * MAX_BYTES, strict_map_key=False)
    u.feed(b)
    try:
        return sum(map(_count, u))
    except Exception as e:
        raise MessageError(f'expected values, found none: {e}') from None


def _count(v: Any) -> int:
    if is_list(v):
        return 1 + sum(map(_count, v))
    if is_dict(v):
        return 1 + sum(1 + _count(e) for e in v.values())
    return 1
