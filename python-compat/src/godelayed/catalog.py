"""Describes functions as JSON, for people and for programs in other languages; docs/PROTOCOL.md has the form."""

from __future__ import annotations

import collections.abc
import datetime
import inspect
import json
import types
import typing
from collections.abc import Callable
from typing import Any

from .registry import Registry

_VERSION = 1
_MOST = 64 << 10  # bytes of a listing
_KINDS = {bool: 'bool', int: 'int64', float: 'float64', str: 'string', bytes: 'bytes', datetime.datetime: 'time'}
_LISTS = (list, tuple, set, frozenset, collections.abc.Sequence, collections.abc.Iterable)
_UNIONS = (typing.Union, types.UnionType)


def listing(registry: Registry) -> bytes:
    """Describes the functions of a registry. Those that do not fit are only counted."""
    functions: list[Any] = []
    size, paths = 64, registry.paths()
    for path in paths:
        function = registry.get(path)
        if function is None:
            continue
        one = json.dumps(_describe(path, function.call), ensure_ascii=True)
        size += len(one) + 2
        if size > _MOST:
            break
        functions.append(one)
    more = len(paths) - len(functions)
    rest = f', "more": {more}' if more else ''
    return f'{{"version": {_VERSION}, "functions": [{", ".join(functions)}]{rest}}}'.encode()


def _describe(path: str, call: Callable[..., Any]) -> dict[str, Any]:
    """Describes one function. What its annotations do not say is any."""
    one: dict[str, Any] = {'path': path, 'parameters': []}
    try:
        signature = inspect.signature(call)
    except (TypeError, ValueError):
        return one
    hints = _hints(call)
    optional = 0
    for p in signature.parameters.values():
        if p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD):
            continue
        hint = hints.get(p.name, Any)
        if p.kind is p.VAR_POSITIONAL:
            one['variadic'] = True
            hint = list[hint]  # type: ignore[valid-type]
        elif p.default is not p.empty:
            optional += 1
        one['parameters'].append({'name': p.name, **_value(hint)})
    if optional:
        one['optional'] = optional
    if hints.get('return', type(None)) is not type(None):
        one['result'] = _value(hints['return'])
    return one


def _hints(call: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(call)
    except Exception:  # an annotation that names what is not there
        return {}


def _value(hint: Any) -> dict[str, Any]:
    text = getattr(hint, '__name__', str(hint)) if isinstance(hint, type) and not typing.get_args(hint) else str(hint)
    return {'go': text.replace('typing.', ''), 'type': _shape(hint, 8)}


def _shape(hint: Any, depth: int) -> dict[str, Any]:
    """Returns the shape of a type's values in messages, down to a depth."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint in _KINDS:
        return {'kind': _KINDS[hint]}
    if depth == 0:
        return {'kind': 'any'}
    if origin in _UNIONS:
        some = [a for a in args if a is not type(None)]
        if len(some) == 1 and len(some) < len(args):
            return {'kind': 'optional', 'elem': _shape(some[0], depth - 1)}
        return {'kind': 'any'}
    if hint in _LISTS or origin in _LISTS:
        elements = set(args) - {Ellipsis}
        return {'kind': 'list', 'elem': _shape(elements.pop() if len(elements) == 1 else Any, depth - 1)}
    if hint is dict or origin in (dict, collections.abc.Mapping):
        key, value = args if len(args) == 2 else (str, Any)
        return {'kind': 'map', 'key': _shape(key, depth - 1), 'elem': _shape(value, depth - 1)}
    return {'kind': 'any'}
