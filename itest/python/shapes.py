"""Every shape of task that the README of the package delayed shows, and those a service comes to next.

Each shape is a name and a function that makes the task; producer.py enqueues them by name, and the Go tests say beside
the same name what has to arrive.
"""

from delayed.delay import delayed
from delayed.task import GoTask, PyTask
from msgpack import Timestamp

import interop_tasks


# Functions of Go's own library are called by their real paths, the others by the names under which the Go tests
# register them.
GO_SHAPES = {
    # From the README, word for word but for the pid and the signal: signal 0 reaches nobody.
    'readme-kill': lambda: GoTask(func_path='syscall.Kill', args=(0, 0)),
    'readme-printf': lambda: GoTask(func_path='fmt.Printf', args=('%d %s\n', [1, 'test'])),
    'readme-println': lambda: GoTask('fmt.Println', (1, 'test')),

    # No argument: the package sends a bare string instead of an array.
    'bare': lambda: GoTask('interop.Nothing'),
    'bare-none': lambda: GoTask('interop.Nothing', None),
    'bare-context': lambda: GoTask('interop.OnlyContext'),
    'empty-tuple': lambda: GoTask('interop.Nothing', ()),

    # One argument, as itself.
    'one-int': lambda: GoTask('interop.Int', 42),
    'one-negative': lambda: GoTask('interop.Int', -2**63),
    'one-uint64': lambda: GoTask('interop.Uint64', 2**64 - 1),
    'one-float': lambda: GoTask('interop.Float', 1.5),
    'one-whole-float': lambda: GoTask('interop.Float', 3),
    'one-bool': lambda: GoTask('interop.Bool', True),
    'one-str': lambda: GoTask('interop.String', 'Grüße, 世界'),
    'one-empty-str': lambda: GoTask('interop.String', ''),
    'one-bytes': lambda: GoTask('interop.Bytes', b'\x00\xff\xc1'),
    'one-list': lambda: GoTask('interop.Ints', [1, 2, 3]),
    'one-empty-list': lambda: GoTask('interop.Ints', []),
    'one-dict': lambda: GoTask('interop.Map', {'a': 1, 'b': 2}),
    'one-time': lambda: GoTask('interop.Time', Timestamp(1700000000, 123456789)),
    'one-any': lambda: GoTask('interop.Any', {'deep': [1, {'er': None}], 'b': b'x'}),
    # One argument in a tuple, which is how most people write it.
    'one-in-tuple': lambda: GoTask('interop.Int', (42,)),
    'one-str-in-tuple': lambda: GoTask('interop.String', ('x',)),
    'context-and-one': lambda: GoTask('interop.ContextInt', 42),

    # A tuple or a list of arguments.
    'two': lambda: GoTask('interop.IntString', (7, 'seven')),
    'two-list': lambda: GoTask('interop.IntString', [7, 'seven']),
    'context-and-two': lambda: GoTask('interop.ContextIntString', (7, 'seven')),
    'pointer': lambda: GoTask('interop.Pointers', (7, None)),
    'nested': lambda: GoTask('interop.Nested', ([[1, 2], [], [3]], {'a': [{'x': 1}, {'x': 2}]})),

    # The variadic parameter: wrapped after other parameters, the arguments themselves when it is the only one.
    'variadic-wrapped': lambda: GoTask('interop.Join', ('-', ['a', 'b', 'c'])),
    'variadic-wrapped-tuple': lambda: GoTask('interop.Join', ('-', ('a', 'b'))),
    'variadic-wrapped-none': lambda: GoTask('interop.Join', ('-', [])),
    'variadic-alone': lambda: GoTask('interop.Sum', (1, 2, 3)),
    'variadic-alone-one': lambda: GoTask('interop.Sum', (1,)),
    'variadic-alone-none': lambda: GoTask('interop.Sum', ()),
    'variadic-alone-bare': lambda: GoTask('interop.Sum'),
    'variadic-any': lambda: GoTask('interop.Anys', (1, 'test', None, [2, 'x'])),

    # A dict or a tuple for a struct.
    'struct-dict': lambda: GoTask('interop.Struct', {'ID': 7, 'name': 'x', 'Tags': ['a']}),
    'struct-dict-omitted': lambda: GoTask('interop.Struct', {'ID': 7, 'name': 'x'}),
    'struct-tuple': lambda: GoTask('interop.Struct', (7, 'x', ['a'])),
    'struct-second': lambda: GoTask('interop.IntStruct', (1, {'ID': 7, 'name': 'x', 'Tags': []})),
    'struct-pointer': lambda: GoTask('interop.StructPointer', {'ID': 7, 'name': 'x', 'Tags': ['a']}),
    'structs': lambda: GoTask('interop.Structs', [{'ID': 1, 'name': 'a'}, (2, 'b', [])]),

    # Arguments that do not fit: the call must not happen.
    'bad-float-for-int': lambda: GoTask('interop.Int', 1.5),
    'bad-str-for-int': lambda: GoTask('interop.Int', '42'),
    'bad-too-few': lambda: GoTask('interop.IntString', (7,)),
    'bad-too-many': lambda: GoTask('interop.IntString', (7, 'seven', 8)),
    'bad-overflow': lambda: GoTask('interop.Uint8', 300),
    'bad-sign': lambda: GoTask('interop.Uint64', -1),
    'bad-key': lambda: GoTask('interop.Struct', {'ID': 7, 'name': 'x', 'Nmae': 'y'}),  # is parked
    'bad-tuple-for-struct': lambda: GoTask('interop.Struct', (7, 'x')),
    'bad-none': lambda: GoTask('interop.IntString', (None, 'seven')),
}


# Python tasks; each function enqueues its task on the queue. A decorated function is what delayed(queue) returned for
# it.
PY_SHAPES = {
    'py-function': lambda q: q.enqueue(PyTask(func=interop_tasks.add, args=(1,), kwargs={'b': 2})),
    'py-path': lambda q: q.enqueue(PyTask(func='interop_tasks:add', args=(1,), kwargs={'b': 2})),
    'py-retry': lambda q: q.enqueue(PyTask(func='interop_tasks:add', args=(1,), kwargs={'b': 2}, retry=1)),
    'py-for-ever': lambda q: q.enqueue(PyTask('interop_tasks:add', (1, 2), retry=-1)),
    'py-nothing': lambda q: q.enqueue(PyTask('interop_tasks:record')),
    'py-kwargs-only': lambda q: q.enqueue(PyTask('interop_tasks:record', kwargs={'a': [1, b'x']})),
    'py-decorated': lambda q: delayed(q)(interop_tasks.add).delay(1, 2),
    'py-decorated-keyword': lambda q: delayed(q)(interop_tasks.add).delay(1, b=2),
    'py-decorated-retry': lambda q: delayed(q)(retry=3)(interop_tasks.add).delay(1, 2),
    'py-decorated-both': lambda q: delayed(q)(interop_tasks.add, retry=3).delay(1, b=2),
}
