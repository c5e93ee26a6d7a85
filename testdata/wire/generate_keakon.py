"""Prints keakon.json: messages as the PyPI package `delayed` (keakon's) writes them.

    pip install -r python-compat/requirements-test.txt
    python testdata/wire/generate_keakon.py > testdata/wire/keakon.json

The bytes come from the real package; what they mean is written out here by hand, so that the two can disagree.
"""

import json
from importlib.metadata import version

from delayed.task import GoTask, PyTask


def add(a, b):
    """Stands for a task function; its path is made from its module and its name."""


add.__module__ = 'app.tasks'

# name, about, class, arguments of the class, what the message says
TASKS = [
    ('go without arguments', 'A Go task without arguments is its path alone.',
     GoTask, {'func_path': 'main.f'},
     {'kind': 'go-bare', 'path': 'main.f'}),
    ('go with None', 'None is the default: no arguments.',
     GoTask, {'func_path': 'main.f', 'args': None},
     {'kind': 'go-bare', 'path': 'main.f'}),
    ('go with one bare argument', 'One argument travels as it is, without an array around it.',
     GoTask, {'func_path': 'main.f', 'args': 42},
     {'kind': 'go-plain', 'path': 'main.f', 'payload': 42}),
    ('go with zero', 'Zero is an argument, not nothing.',
     GoTask, {'func_path': 'main.f', 'args': 0},
     {'kind': 'go-plain', 'path': 'main.f', 'payload': 0}),
    ('go with an empty string', 'So is an empty string.',
     GoTask, {'func_path': 'main.f', 'args': ''},
     {'kind': 'go-plain', 'path': 'main.f', 'payload': ''}),
    ('go with an empty list', 'An empty list may be one argument or none of a variadic function: the function decides.',
     GoTask, {'func_path': 'main.f', 'args': []},
     {'kind': 'go-plain', 'path': 'main.f', 'payload': []}),
    ('go with one argument in a list', 'Also sent for a function of one parameter that is no list.',
     GoTask, {'func_path': 'main.f', 'args': [42]},
     {'kind': 'go-plain', 'path': 'main.f', 'payload': [42]}),
    ('go with two arguments', 'Several arguments are an array. A tuple is written as a list is.',
     GoTask, {'func_path': 'example.com/app/mail.Welcome', 'args': (42, 'en')},
     {'kind': 'go-plain', 'path': 'example.com/app/mail.Welcome', 'payload': [42, 'en']}),
    ('go with a variadic argument', 'As in the README of the package: the variadic argument is one element, a list.',
     GoTask, {'func_path': 'fmt.Printf', 'args': ('%d %s\n', [1, 'test'])},
     {'kind': 'go-plain', 'path': 'fmt.Printf', 'payload': ['%d %s\n', [1, 'test']]}),
    ('go with nothing but a variadic argument', 'As in the README of the package: alone, it is the list itself.',
     GoTask, {'func_path': 'fmt.Println', 'args': (1, 'test')},
     {'kind': 'go-plain', 'path': 'fmt.Println', 'payload': [1, 'test']}),
    ('go with a dict', 'One argument, a struct by the names of its fields.',
     GoTask, {'func_path': 'main.f', 'args': {'X': 1, 'Y': -2}},
     {'kind': 'go-plain', 'path': 'main.f', 'payload': {'X': 1, 'Y': -2}}),
    ('go with values of all kinds', 'bytes are binary, floats have 64 bits.',
     GoTask, {'func_path': 'main.f', 'args': (None, True, -5, 2.5, 'é', b'\x00\xff', [1, [2]], {'k': {'n': None}})},
     {'kind': 'go-plain', 'path': 'main.f',
      'payload': [None, True, -5, 2.5, 'é', {'$bin': '00ff'}, [1, [2]], {'k': {'n': None}}]}),
    ('go method', 'A path may hold what Go writes for methods.',
     GoTask, {'func_path': 'example.com/app/mail.(*Mailer).Send', 'args': 42},
     {'kind': 'go-plain', 'path': 'example.com/app/mail.(*Mailer).Send', 'payload': 42}),
    ('go with a long string', 'More than 255 bytes: wider headers, in the payload and around it.',
     GoTask, {'func_path': 'main.f', 'args': 'x' * 300},
     {'kind': 'go-plain', 'path': 'main.f', 'payload': 'x' * 300}),
    ('python without arguments', 'All defaults are cut off.',
     PyTask, {'func': 'app.tasks:add'},
     {'kind': 'py', 'path': 'app.tasks:add'}),
    ('python function', 'The path is made from the function.',
     PyTask, {'func': add, 'args': (1, 2)},
     {'kind': 'py', 'path': 'app.tasks:add', 'args': [1, 2]}),
    ('python with arguments', 'What is cut off is whatever comes behind the last that is not empty.',
     PyTask, {'func': 'app.tasks:add', 'args': [1, 'two']},
     {'kind': 'py', 'path': 'app.tasks:add', 'args': [1, 'two']}),
    ('python with keyword arguments', 'An empty tuple stands for the arguments.',
     PyTask, {'func': 'app.tasks:add', 'kwargs': {'a': 1, 'b': 2}},
     {'kind': 'py', 'path': 'app.tasks:add', 'args': [], 'kwargs': {'a': 1, 'b': 2}}),
    ('python with both', '',
     PyTask, {'func': 'app.tasks:add', 'args': (1,), 'kwargs': {'b': 2}},
     {'kind': 'py', 'path': 'app.tasks:add', 'args': [1], 'kwargs': {'b': 2}}),
    ('python with retry', 'With a retry nothing is cut off.',
     PyTask, {'func': 'app.tasks:add', 'retry': 3},
     {'kind': 'py', 'path': 'app.tasks:add', 'args': [], 'kwargs': {}, 'retry': 3}),
    ('python with endless retry', '',
     PyTask, {'func': 'app.tasks:add', 'args': (1,), 'retry': -1},
     {'kind': 'py', 'path': 'app.tasks:add', 'args': [1], 'kwargs': {}, 'retry': -1}),
    ('python with everything', '',
     PyTask,
     {'func': 'app.tasks:add', 'args': (1, [2.5, None]), 'kwargs': {'b': b'x', 'c': {'d': True}}, 'retry': 1000},
     {'kind': 'py', 'path': 'app.tasks:add', 'args': [1, [2.5, None]],
      'kwargs': {'b': {'$bin': '78'}, 'c': {'d': True}}, 'retry': 1000}),
]


def tagged(value):
    """Writes a Python value in the notation of README.md."""
    if isinstance(value, bytes):
        return {'$bin': value.hex()}
    if isinstance(value, (list, tuple)):
        return [tagged(v) for v in value]
    if isinstance(value, dict):
        return {k: tagged(v) for k, v in value.items()}
    if callable(value):
        return {'$func': value.__name__}
    return value


def document():
    """Returns keakon.json as a dict."""
    vectors = []
    for name, about, cls, args, message in TASKS:
        call = {k: tagged(v) for k, v in args.items()}
        vectors.append({'name': name, 'by': ['keakon'], 'about': about, 'class': cls.__name__, 'call': call,
                        'hex': cls(**args).serialize().hex(), **message})
    return {'package': 'delayed', 'version': version('delayed'), 'msgpack': version('msgpack'), 'vectors': vectors}


def text():
    """Returns keakon.json as it is in the repository: one line for each vector."""
    doc = document()
    lines = ',\n'.join('    ' + json.dumps(v, ensure_ascii=False) for v in doc.pop('vectors'))
    head = json.dumps(doc, indent=2).rstrip('}').rstrip()
    return head + ',\n  "vectors": [\n' + lines + '\n  ]\n}\n'


if __name__ == '__main__':
    print(text(), end='')
