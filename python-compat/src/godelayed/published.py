"""What the workers of a queue publish of their functions, with which queues with check=True compare calls."""

from __future__ import annotations

import difflib
import json
import struct
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgpack

from .calls import Call
from .errors import ArgumentsError
from .keys import Keys
from .kinds import is_dict, is_list
from .link import Link
from .values import Plain

_VERSION = 1
_LIFE = 10.0  # seconds for which a producer relies on what it has read of workers
_PART_LIFE = 1.0  # the same while there are none, or some have published nothing yet
_REREAD_EVERY = 1.0  # the shortest time between two reads of the functions of all workers
_MOST_BYTES = 1 << 20  # of one list; none that our workers write is as large
_MOST_READ = 1 << 20  # of one reply
_PAGE = 1000
_MOST_STEPS = 100  # shapes within each other that hold one value, which a strange list may make endless
_MOST_NAMED = 5  # functions that an error names

_KINDS: dict[str, tuple[type, ...]] = {
    'bool': (bool,),
    'string': (str,),
    'time': (msgpack.Timestamp,),
    'float32': (float, int),
    'float64': (float, int),
}
_MANTISSAS = {'float32': 24, 'float64': 53}  # bits; workers in Go refuse numbers that these do not hold exactly
_INTEGERS = {f'{sign}int{n}': n if not sign else -n for sign in ('', 'u') for n in (8, 16, 32, 64)}


class MisfitError(Exception):
    """Says what a function takes and what was found."""


class Function:
    """A function that a worker has published."""

    def __init__(self, listed: Mapping[str, Any], types: Mapping[str, Any]) -> None:
        self.path = str(listed['path'])
        self.python = ':' in self.path
        self.aliases = [str(a) for a in _list(listed.get('aliases'))]
        self.parameters = [p for p in _list(listed.get('parameters')) if is_dict(p)]
        self.variadic = bool(listed.get('variadic')) and bool(self.parameters)
        optional = listed.get('optional')
        self.optional = optional if isinstance(optional, int) and optional > 0 else 0
        result = listed.get('result')
        self.result = str(result.get('go', '')) if is_dict(result) else ''
        self._types = types

    def __str__(self) -> str:
        """Returns the function as it is declared."""
        parts = [f'{p["name"]} {self._type(i)}' if p.get('name') else self._type(i) for i, p in self._counted()]
        name = self.path if self.python else self.path[self.path.rfind('/') + 1 :]
        return f'{name}({", ".join(parts)}){" " if self.result else ""}{self.result}'

    def _counted(self) -> list[tuple[int, Any]]:
        return list(enumerate(self.parameters))

    def _type(self, i: int) -> str:
        text = str(self.parameters[i].get('go', ''))
        if not self.variadic or i < len(self.parameters) - 1:
            return text
        return '...' + (text[5:-1] if text.startswith('list[') else text[2:] if text.startswith('[]') else text)

    def check(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Raises MisfitError if a worker would refuse the arguments. What the function has not published fits."""
        parameters = self.parameters
        fixed, least = len(parameters), len(parameters) - self.optional
        if self.variadic:
            fixed -= 1
            least = min(least, fixed)
            last = args[-1] if len(args) == len(parameters) else None
            if last is not None and self._fits(parameters[fixed].get('type'), args[fixed]):
                args = args[:fixed]  # on the wire, the variadic arguments of Go are one list
        names = [str(p.get('name', '')) for p in parameters]
        given = len(args) + len(kwargs)
        if (len(args) > fixed and not self.variadic) or any(n not in kwargs for n in names[len(args) : least]):
            found = len(args) if len(args) > fixed else given
            raise MisfitError(f'expected the arguments of {self}, found {found}')
        for i, v in enumerate(args):
            shape, text = parameters[min(i, len(parameters) - 1)].get('type'), self._type(min(i, len(parameters) - 1))
            if i >= fixed and is_dict(shape) and shape.get('kind') == 'list':
                shape, text = shape.get('elem'), text[3:]
            self._one(f'argument {i + 1}', shape, text, v)
        for i, name in enumerate(names[:fixed]):
            if name not in kwargs:
                continue
            if i < len(args):
                raise MisfitError(f'argument {name} of {self}: expected it once, found it given twice')
            self._one(f'argument {name}', parameters[i].get('type'), self._type(i), kwargs[name])

    def _one(self, where: str, shape: Any, text: str, v: Any) -> None:
        try:
            self._compare(shape, v, '', 0)
        except MisfitError as e:
            at, want, got = e.args
            if not at and text and not want.startswith(('fields ', 'at most ')):
                want = text
            place = f' at {at}' if at else ''
            raise MisfitError(f'{where}: expected {want}{place}, as in {self}, found {got}') from None

    def _fits(self, shape: Any, v: Any) -> bool:
        try:
            self._compare(shape, v, '', 0)
        except MisfitError:
            return False
        return True

    def _compare(self, shape: Any, v: Any, at: str, steps: int) -> None:
        """Raises MisfitError with place, what was expected and what was found, if a value is not one of the shape."""
        name = ''
        if is_dict(shape) and shape.get('kind') == 'ref':
            name = str(shape.get('name', ''))
            shape = self._types.get(name)
        if not is_dict(shape) or steps > _MOST_STEPS:
            return
        kind, elem = shape.get('kind'), shape.get('elem')
        length = shape.get('length')
        if kind == 'optional':
            if v is not None:
                self._compare(elem, v, at, steps + 1)
        elif kind == 'list':
            if v is None and length is None:
                return
            if not is_list(v):
                raise MisfitError(at, 'a list', _kind_of(v))
            if length is not None and len(v) != length:
                raise MisfitError(at, f'a list of {length}', str(len(v)))
            for i, e in enumerate(v):
                self._compare(elem, e, f'{at}[{i}]', steps + 1)
        elif kind == 'map':
            if v is None:
                return
            if not is_dict(v):
                raise MisfitError(at, 'a map', _kind_of(v))
            for k, e in v.items():
                self._compare(shape.get('key'), k, at + 'a key', steps + 1)
                self._compare(elem, e, at + 'a value', steps + 1)
        elif kind == 'struct':
            self._struct([f for f in _list(shape.get('fields')) if is_dict(f)], name or 'the struct', v, at, steps)
        elif not self._plain(kind, length, v):
            raise MisfitError(at, str(kind), _kind_of(v))

    def _struct(self, fields: list[Any], name: str, v: Any, at: str, steps: int) -> None:
        name = name[name.rfind('/') + 1 :]
        if is_dict(v):
            types = {f.get('name'): f.get('type') for f in fields}
            for k, e in v.items():
                if k not in types:
                    known = ', '.join(map(str, types)) or 'none'
                    raise MisfitError(at, f'fields of {name}: {known}', f'{k!r}')
                self._compare(types[k], e, f'{at}.{k}', steps + 1)
        elif is_list(v):
            if len(v) > len(fields):
                raise MisfitError(at, f'at most {len(fields)} fields of {name}', str(len(v)))
            for f, e in zip(fields, v):
                self._compare(f.get('type'), e, f'{at}.{f.get("name")}', steps + 1)
        else:
            raise MisfitError(at, name, _kind_of(v))

    def _plain(self, kind: Any, length: Any, v: Any) -> bool:
        """Returns whether a value is one of a kind without parts. Kinds of newer versions hold anything."""
        if kind == 'bytes':
            if v is None:
                return length is None
            return (self.python and isinstance(v, str)) or (isinstance(v, bytes) and length in (None, len(v)))
        if kind in _INTEGERS:
            if not isinstance(v, int) or (isinstance(v, bool) and not self.python):
                return False
            bits = _INTEGERS[kind]
            return self.python or (-(1 << bits - 1) <= v < 1 << bits - 1 if bits > 0 else 0 <= v < 1 << -bits)
        if kind in _MANTISSAS and not self.python and not _exact(v, _MANTISSAS[kind]):
            return False
        types = _KINDS.get(kind)
        return types is None or (isinstance(v, types) and (kind == 'bool' or not isinstance(v, bool)))


def _exact(v: Any, mantissa: int) -> bool:
    """Returns whether a floating-point number with so many bits of mantissa holds a number exactly."""
    if isinstance(v, int):
        return v == 0 or abs(v).bit_length() - (abs(v) & -abs(v)).bit_length() < mantissa
    if not isinstance(v, float) or mantissa == 53 or v != v:
        return True
    try:
        return bool(struct.unpack('f', struct.pack('f', v))[0] == v)
    except OverflowError:
        return False


def _kind_of(v: Any) -> str:
    """Names the kind of a value, which itself may be secret unless it is a number."""
    if isinstance(v, (int, float)) and not isinstance(v, bool):
        return f'the number {v}'
    names: dict[Any, str] = {bool: 'a bool', str: 'a str', bytes: 'bytes', list: 'a list', dict: 'a dict'}
    return 'None' if v is None else names.get(type(v), 'a time')


def _list(v: Any) -> list[Any]:
    return v if is_list(v) else []


class Listing:
    """The functions that a worker has published. more: whether there are others, which did not fit."""

    def __init__(self, listed: Mapping[str, Any]) -> None:
        types = listed.get('types')
        self.more = bool(listed.get('more'))
        self.functions: dict[str, Function] = {}
        for one in _list(listed.get('functions')):
            if not is_dict(one) or 'path' not in one:
                continue
            f = Function(one, types if is_dict(types) else {})
            self.functions.update(dict.fromkeys([*f.aliases, f.path], f))


def _listing(text: Any) -> Listing | None:
    """Reads a list. None: it is missing, too large or of another version, so its worker may know any function."""
    if not isinstance(text, bytes):
        return None
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return Listing(listed) if is_dict(listed) and listed.get('version') == _VERSION else None


class Published:
    """What the workers of a queue publish, as a producer remembers it. Threads, or coroutines, may share it."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._workers: dict[bytes, Listing | None] | None = None  # None: never read
        self._at = self._whole = float('-inf')  # when that was read, and when all lists were
        self._reading = False

    async def check(self, link: Link, calls: Sequence[Call]) -> None:
        """Raises ArgumentsError for the first call that no worker takes, after another look at the workers."""
        now = time.monotonic()
        workers = self._workers
        part = not workers or None in workers.values()
        if workers is None or (now - self._at >= (_PART_LIFE if part else _LIFE) and not self._reading):
            workers = await self._read(link, whole=False)
        if self._wrong(workers, calls) is None:
            return
        workers = await self._read(link, whole=time.monotonic() - self._whole >= _REREAD_EVERY)
        wrong = self._wrong(workers, calls)
        if wrong is not None:
            raise ArgumentsError(wrong)

    async def _read(self, link: Link, *, whole: bool) -> dict[bytes, Listing | None]:
        """Reads the lists of new workers, or of all."""
        self._reading = True
        try:
            at = time.monotonic()
            ids = sorted(await link.send('SMEMBERS', self._keys.workers))
            known = {} if whole or self._workers is None else self._workers
            found = {id: known.get(id) for id in ids}
            wanted = [id for id in ids if found[id] is None]
            texts: list[Any] = []
            while len(texts) < len(wanted):
                page = wanted[len(texts) : len(texts) + _PAGE]
                texts += await link.run('fields', [self._keys.functions], [_MOST_BYTES, _MOST_READ, *page])
            same: dict[Any, Listing | None] = {}  # workers of one program publish the same
            for id, text in zip(wanted, texts):
                if text not in same:
                    same[text] = _listing(text)
                found[id] = same[text]
            self._workers, self._at = found, at
            if len(wanted) == len(ids):
                self._whole = at
            return found
        finally:
            self._reading = False

    def _wrong(self, workers: Mapping[bytes, Listing | None], calls: Sequence[Call]) -> str | None:
        """Returns what is wrong with the first call that no worker takes."""
        listings = list(dict.fromkeys(workers.values()))
        for i, c in enumerate(calls, 1):
            wrong = _misfit(listings, c)
            if wrong is not None:
                return f'call {i}: {c.path}: {wrong}' if len(calls) > 1 else f'{c.path}: {wrong}'
        return None


def _misfit(listings: Sequence[Listing | None], c: Call) -> str | None:
    """Returns why no worker takes a call. None: one takes it, or one may that has not published it."""
    plain = Plain(c.path)
    args, kwargs = plain.arguments(c.args, 1), plain.keywords(c.kwargs, 1)
    wrong, known, free = '', set[str](), False
    for listing in listings:
        f = listing.functions.get(c.path) if listing else None
        if f is None:
            free = free or listing is None or listing.more
        else:
            try:
                f.check(args, kwargs)
            except MisfitError as e:
                wrong = wrong or str(e)
            else:
                return None
        known |= {path for path, f in (listing.functions if listing else {}).items() if f.python == c.python}
    if free or (not wrong and not known):
        return None
    return wrong or _unknown(c.path, known)


def _unknown(path: str, known: set[str]) -> str:
    """Returns the text about a path that nobody has published, with the one that was probably meant."""
    short = {p[p.rfind('/') + 1 :]: p for p in sorted(known)}
    near = difflib.get_close_matches(path, known, 1, 0.8)
    near = near or [short[n] for n in difflib.get_close_matches(path[path.rfind('/') + 1 :], short, 1, 0.7)]
    text = 'expected a function that a worker of the queue has registered'
    if near:
        return f'{text}; did you mean {near[0]}?'
    some = sorted(known)
    more = f', or one of {len(some) - _MOST_NAMED} others' if len(some) > _MOST_NAMED else ''
    return f'{text}: {", ".join(some[:_MOST_NAMED])}{more}'
