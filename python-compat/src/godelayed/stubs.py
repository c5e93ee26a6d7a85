"""Makes a module of typed functions from what `worker -functions` prints about a Go worker program.

mailworker -functions > functions.json
python -m godelayed.stubs functions.json -o tasks.py

What it writes is as ruff formats it, and the same for the same input.
"""

from __future__ import annotations

import argparse
import builtins
import json
import keyword
import re
import sys
from collections.abc import Sequence
from typing import Any, cast

from .kinds import is_dict, is_list

VERSION = 1
WIDTH = 88

_WORD = re.compile(r'[A-Z]+s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+')
_KINDS = {'bool': 'bool', 'string': 'str', 'bytes': 'bytes', 'time': 'datetime', 'any': 'Any'}
_SHADOWS = {'bool', 'bytes', 'datetime', 'dict', 'field', 'float', 'int', 'list', 'str'}
_ZEROES = {
    'bool': 'False',
    'string': '""',
    'bytes': 'b""',
    'optional': 'None',
    'any': 'None',
    'list': 'list',
    'map': 'dict',
}


class StubsError(Exception):
    """The input is not a list of functions from which stubs can be made."""


def snake(name: str) -> str:
    """Converts a Go name to Python's style: userID becomes user_id."""
    if not name.isascii():
        return _identifier(name.lower())
    out = ''
    for word in _WORD.findall(name):
        out += word.lower() if word.isdigit() or not out else '_' + word.lower()
    return _identifier(out)


def camel(name: str) -> str:
    """Converts a name to the style of class names: order becomes Order."""
    words = re.findall(r'\w+', name)
    return _identifier(''.join(w[0].upper() + w[1:] for w in words))


def _identifier(name: str) -> str:
    name = name.strip('_')
    if not name.isidentifier():
        name = re.sub(r'\W', '_', name)
        name = name if name.isidentifier() else 'n' + name
    return name + '_' if keyword.iskeyword(name) or name == 'self' else name


def unique(name: str, taken: set[str]) -> str:
    """Returns the name, with a number added if it is taken already, and adds it to taken."""
    found, n = name, 1
    while found in taken:
        n += 1
        found = f'{name}_{n}'
    taken.add(found)
    return found


class Namespace:
    """A package, or a type with methods, which becomes one class."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words
        self.functions: dict[str, Function] = {}
        self.inner: dict[str, Namespace] = {}
        self.cls = ''

    def walk(self) -> list[Namespace]:
        """Returns this namespace and all inside it, the inner ones first."""
        return [n for name in sorted(self.inner) for n in self.inner[name].walk()] + [self]


class Function:
    """A function: its name, the name of its declaration, and its parameters as they are written."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw
        self.path: str = raw['path']
        self.declaration = ''


class Module:
    """The module made from one list of functions."""

    def __init__(self, listing: Any) -> None:
        if not is_dict(listing) or not is_list(listing.get('functions')):
            raise StubsError('expected what a worker program prints with -functions, found other JSON')
        if listing.get('version') != VERSION:
            raise StubsError(
                f'expected version {VERSION} of the list of functions, found {listing.get("version")!r}: upgrade '
                'godelayed'
            )
        self.types: dict[str, Any] = listing.get('types', {})
        self.functions = [Function(f) for f in sorted(listing['functions'], key=lambda f: str(f['path']))]
        self.taken = {'ABSENT', 'Any', 'AsyncFunction', 'Function', 'Mapping', 'Optional', 'Queue', 'Sequence'}
        self.taken |= {'AsyncTasks', 'Tasks', 'aio', 'dataclass', 'datetime', 'field', *dir(builtins)}
        self.used: set[str] = set()
        self.classes = self._class_names()
        self.structs: dict[str, tuple[str, list[Any]]] = {}  # by class: where the struct comes from, and its fields
        self.aliases: dict[str, str] = {}
        self.defined: list[str] = []  # classes and aliases, in the order in which they are written
        self.root = self._namespaces()

    # Names

    def _class_names(self) -> dict[str, str]:
        """Names the types: each by its own name, with the name of its package before it where two would have the same
        name."""
        short = {path: camel(_last(path)) for path in self.types}
        names: dict[Any, Any] = {}
        for path in sorted(self.types):
            name = short[path]
            if name in self.taken or list(short.values()).count(name) > 1:
                name = camel(' '.join([*_words(path)[:-1], name]))
            names[path] = unique(name, self.taken)
        return names

    def _namespaces(self) -> Namespace:
        packages: dict[str, list[str]] = {}  # by last element of the import path: the packages that have it
        for f in self.functions:
            prefix = _package(f.path)
            group = packages.setdefault(_words(f.path)[0], [])
            if prefix not in group:
                group.append(prefix)
        root = Namespace(())
        for f in self.functions:
            words = _words(f.path)
            if len(packages[words[0]]) > 1 and len(words) > 1:
                elements = [e for e in _package(f.path).split('/') if not re.fullmatch(r'v\d+', e)]
                words[0] = snake('_'.join(elements[-2:]))
            space = root
            for word in words[:-1]:
                space = space.inner.setdefault(word, Namespace((*space.words, word)))
            space.functions[unique(words[-1], set(space.functions))] = f
        for space in root.walk():
            for name in sorted(set(space.functions) & set(space.inner)):
                space.functions[unique(name, {*space.functions, *space.inner})] = space.functions.pop(name)
            if space is not root:
                space.cls = unique(camel(' '.join(space.words).replace('_', ' ')) + 'Tasks', self.taken)
                self.taken.add('Async' + space.cls)
            for name, f in sorted(space.functions.items()):
                f.declaration = unique('_' + '_'.join([*space.words, name]), self.taken)
        return root

    # Types

    def annotation(self, shape: dict[str, Any], hint: str, *, argument: bool = False) -> str:
        """Returns the annotation for a type.

        hint is a name for what has no name in Go. argument says that the value is a parameter, which is only read.
        """
        kind = shape['kind']
        if kind in _KINDS:
            if kind in ('time', 'any'):
                self.used.add(_KINDS[kind])
            return _KINDS[kind]
        if re.fullmatch(r'u?int\d+', kind):
            return 'int'
        if re.fullmatch(r'float\d+', kind):
            return 'float'
        if kind == 'ref':
            self._define(shape['name'])
            return self.classes[shape['name']]
        if kind == 'struct':
            name = unique(hint, self.taken)
            self._struct(name, 'a struct without a name', shape)
            return name
        if kind == 'optional':
            inner = self.annotation(shape['elem'], hint, argument=argument)
            self.used.add('Optional')
            return inner if inner.startswith('Optional[') or inner == 'Any' else f'Optional[{inner}]'
        if kind == 'list':
            return self._generic('list', 'Sequence', argument, self.annotation(shape['elem'], hint, argument=argument))
        if kind == 'map':
            key = self.annotation(shape['key'], hint)
            return self._generic(
                'dict', 'Mapping', argument, f'{key}, {self.annotation(shape["elem"], hint, argument=argument)}'
            )
        raise StubsError(f'expected a kind of type that this version of godelayed knows, found {kind!r}: upgrade it')

    def _generic(self, own: str, read: str, argument: bool, inner: str) -> str:
        if argument:
            self.used.add(read)
        return f'{read if argument else own}[{inner}]'

    def _define(self, path: str) -> None:
        name = self.classes[path]
        if name in self.structs or name in self.aliases:
            return
        shape = self.types[path]
        if shape['kind'] == 'struct':
            self._struct(name, path, shape)
            return
        self.aliases[name] = ''
        text = self.annotation(shape, name)
        self.aliases[name] = re.sub(rf'\b{name}\b', f'"{name}"', text)
        self.defined.append(name)

    def _struct(self, name: str, origin: str, shape: dict[str, Any]) -> None:
        self.structs[name] = (origin, [])
        fields = shape.get('fields', [])
        taken: set[str] = set()
        defaults = len(fields)  # fields from this index on have a default
        while defaults and fields[defaults - 1].get('omitempty') and _zero(fields[defaults - 1]['type']):
            defaults -= 1
        for i, f in enumerate(fields):
            attribute = snake(f['name'])
            attribute = unique(attribute + '_' if attribute in _SHADOWS else attribute, taken)
            text = self.annotation(f['type'], name + camel(f['name']))
            options: list[Any] = []
            if i >= defaults:
                zero = _zero(f['type'])
                # Of a list without types pyright would not know what it holds.
                empty = {'list': 'lambda: []', 'dict': 'lambda: {}'}.get(zero)
                options.append(f'default_factory={empty}' if empty else f'default={zero}')
            if attribute != f['name']:
                options.append(f'metadata={{"msgpack": {_quoted(f["name"])}}}')
            self.structs[name][1].append((attribute, text, options))
        self.defined.append(name)

    # Text

    def text(self, source: str) -> str:
        declarations = [self._declaration(f) for f in self.functions]
        spaces = self.root.walk()
        parts = [self._alias(n) if n in self.aliases else self._class(n) for n in self.defined]
        parts += declarations
        parts += [self._space(s, asynchronous) for asynchronous in (False, True) for s in spaces]
        return '\n\n\n'.join([self._head(source), *parts]) + '\n'

    def _head(self, source: str) -> str:
        doc = 'Functions of Go.' if not source else f'Functions of Go, as {source} lists them.'
        lines = [
            f'"""{doc} Made by godelayed.stubs: do not edit."""',
            '',
            '# ruff: noqa',
            'from __future__ import annotations',
            '',
        ]
        if self.used & {'Mapping', 'Sequence'}:
            lines.append(f'from collections.abc import {", ".join(sorted(self.used & {"Mapping", "Sequence"}))}')
        if self.structs:
            field = any('field(' in self._class(name) for name in self.structs)
            lines.append('from dataclasses import dataclass' + (', field' if field else ''))
        if 'datetime' in self.used:
            lines.append('from datetime import datetime')
        if self.used & {'Any', 'Optional'}:
            lines.append(f'from typing import {", ".join(sorted(self.used & {"Any", "Optional"}))}')
        if lines[-1]:
            lines.append('')
        names = ['AsyncFunction', 'Function'] if self.functions else []
        if 'ABSENT' in self.used:
            names.insert(0, 'ABSENT')
        lines.append('from godelayed import Queue, aio')
        if names:
            lines.append(f'from godelayed.typed import {", ".join(names)}')
        return '\n'.join(lines)

    def _alias(self, name: str) -> str:
        return f'{name} = {self.aliases[name]}'

    def _class(self, name: str) -> str:
        origin, fields = self.structs[name]
        lines = ['@dataclass', f'class {name}:', f'    """{_plain(origin)}"""']
        if fields:
            lines.append('')
        for attribute, text, options in fields:
            line = f'    {attribute}: {text}'
            if len(options) == 1 and options[0].startswith('default='):
                line += ' = ' + options[0].partition('=')[2]
            elif options:
                line = _call(line + ' = field', options)
            lines.append(line)
        return '\n'.join(lines)

    def _declaration(self, f: Function) -> str:
        raw, parameters, written = f.raw, f.raw['parameters'], cast('list[str]', [])
        variadic = raw.get('variadic', False)
        fixed = len(parameters) - variadic
        optional = min(fixed, len(parameters) - raw.get('optional', 0))  # the first that may be left out
        taken: set[str] = set()
        unnamed = [i for i in range(fixed) if not parameters[i].get('name')]
        hint = camel(_words(f.path)[-1].replace('_', ' '))
        for i, p in enumerate(parameters):
            name = unique(snake(p['name']) if p.get('name') else f'arg{i + 1}', taken)
            shape, inner = p['type'], hint + camel(name.replace('_', ' '))
            if i == fixed:
                written.append(f'*{name}: {self.annotation(shape["elem"], inner, argument=True)}')
                continue
            text = f'{name}: {self.annotation(shape, inner, argument=True)}'
            if i >= optional:
                self.used.add('ABSENT')
                text += ' = ABSENT'
            written.append(text)
            if unnamed and i == unnamed[-1]:
                written.append('/')
        result = self.annotation(raw['result']['type'], hint + 'Result') if raw.get('result') else 'None'
        go = ', '.join(_go(p, variadic and i == fixed) for i, p in enumerate(parameters))
        doc = f'{f.path}({go})' + (f' {raw["result"]["go"]}' if raw.get('result') else '')
        return '\n'.join(
            [
                _call(f'def {f.declaration}', written, f' -> {result}:'),
                f'    """{_plain(doc)}"""',
                '    raise NotImplementedError("it runs in a Go worker: call delay")',
            ]
        )

    def _space(self, space: Namespace, asynchronous: bool) -> str:
        prefix, queue = ('Async', 'aio.Queue') if asynchronous else ('', 'Queue')
        cls = prefix + (space.cls or 'Tasks')
        what = '.'.join(space.words)
        doc = f'The functions of {what}' if what else 'All functions'
        where = 'a queue of godelayed.aio' if asynchronous else 'a queue'
        lines = [
            f'class {cls}:',
            f'    """{doc}, on {where}."""',
            '',
            f'    def __init__(self, queue: {queue}) -> None:',
        ]
        members = {name: [f'        self.{name} = {prefix}{inner.cls}(queue)'] for name, inner in space.inner.items()}
        for name, f in space.functions.items():
            members[name] = [
                _call(f'        self.{name} = {prefix}Function', ['queue', _quoted(f.path), f.declaration])
            ]
        body = [line for name in sorted(members) for line in members[name]]
        return '\n'.join(lines + (body or ['        pass']))


def _call(head: str, parts: list[str], tail: str = '') -> str:
    """Writes what is in brackets on one line if it fits, else each part on a line of its own."""
    line = f'{head}({", ".join(parts)}){tail}'
    if len(line) <= WIDTH or not parts:
        return line
    indent = ' ' * (len(head) - len(head.lstrip()))
    return '\n'.join(
        [f'{head}(', *[f'{indent}    {p},' if p != '/' else f'{indent}    /,' for p in parts], f'{indent}){tail}']
    )


def _go(parameter: dict[str, Any], variadic: bool) -> str:
    text = parameter['go']
    if variadic:
        text = '...' + text[2:]
    return f'{parameter["name"]} {text}' if parameter.get('name') else text


def _zero(shape: dict[str, Any]) -> str:
    if re.fullmatch(r'u?int\d+', shape['kind']):
        return '0'
    if shape['kind'].startswith('float'):
        return '0.0'
    if 'length' in shape:
        return ''
    return _ZEROES.get(shape['kind'], '')


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _plain(text: str) -> str:
    """Returns text in a form that a docstring can contain."""
    text = text.replace('\\', '\\\\').replace('"""', "'''")
    return text[:-1] + "'" if text.endswith('"') else text


def _split(path: str) -> tuple[str, str]:
    """Splits a path after the last slash that is not in brackets."""
    outside = re.sub(r'\[.*\]', lambda m: '-' * len(m.group()), path)
    cut = outside.rfind('/') + 1
    return path[:cut], path[cut:]


def _package(path: str) -> str:
    """Returns the import path of a function."""
    before, last = _split(path)
    return before + last.partition('.')[0]


def _last(path: str) -> str:
    """Returns the name of a type without its package, and without the packages of the types in its brackets."""
    return re.sub(r'[\w./~·-]*\.(?=\w)', '', path)


def _words(path: str) -> list[str]:
    """Returns the names of package, type and function in Python's style. A version such as v2 is not a package name."""
    before, last = _split(path)
    first, dot, rest = last.partition('.')
    if dot and before and re.fullmatch(r'v\d+', first):
        first = before.rstrip('/').rpartition('/')[2]
    words = [first, *re.sub(r'[()*]', '', rest).split('.')] if dot else [first]
    return [snake(w) if re.search(r'\w', w) else 'n' for w in words]


def generate(listing: Any, source: str = '') -> str:
    """Returns the source of the module for a list of functions that json.load has read.

    The module's docstring gives source as its origin.
    """
    try:
        return Module(listing).text(source)
    except (AttributeError, KeyError, TypeError) as e:
        raise StubsError(
            f'expected what a worker program prints with -functions, found a list in which something is missing: {e!r}'
        ) from e


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns its exit code."""
    parser = argparse.ArgumentParser(
        'python -m godelayed.stubs', description='Make a module of typed functions of a Go worker program.'
    )
    parser.add_argument('functions', help='what the program prints with -functions; - for standard input')
    parser.add_argument('-o', '--output', metavar='FILE', help='the module to write; standard output if it is left out')
    parser.add_argument('--check', action='store_true', help='write nothing; fail if FILE is not what would be written')
    given = parser.parse_args(arguments)
    if given.check and not given.output:
        parser.error('--check needs --output')
    try:
        if given.functions == '-':
            listing = json.load(sys.stdin)
        else:
            with open(given.functions, encoding='utf-8') as f:
                listing = json.load(f)
        text = generate(listing)
        if given.check:
            with open(given.output, encoding='utf-8') as f:
                if f.read() == text:
                    return 0
            raise StubsError(f'{given.output} is not what the list of functions gives: make it anew')
        if given.output:
            with open(given.output, 'w', encoding='utf-8', newline='\n') as f:
                f.write(text)
        else:
            sys.stdout.write(text)
    except (OSError, ValueError, StubsError) as e:
        print(f'godelayed.stubs: {e}', file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
