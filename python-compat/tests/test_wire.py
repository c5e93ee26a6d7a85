"""Compares the golden vectors of testdata/wire with plain msgpack and the PyPI package `delayed`."""

import datetime
import importlib.util
import json
import math
import random
from pathlib import Path

import delayed.task
import msgpack
import pytest

from godelayed.calls import Call, Stamp
from godelayed.options import Options

WIRE = Path(__file__).resolve().parents[2] / 'testdata' / 'wire'


def vectors(file):
    """Returns the vectors of a file as pytest parameters with their names."""
    found = json.loads((WIRE / file).read_text(encoding='utf-8'))['vectors']
    assert len(found) >= 20, f'{file} has only {len(found)} vectors'
    return [pytest.param(v, id=v['name']) for v in found]


def generator():
    """Returns the module generate_keakon.py."""
    spec = importlib.util.spec_from_file_location('generate_keakon', WIRE / 'generate_keakon.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def raw(vector):
    """Returns the bytes of a vector."""
    if 'parts' in vector:
        return b''.join(bytes.fromhex(part) * times for part, times in vector['parts'])
    return bytes.fromhex(vector['hex'])


def untag(value):
    """Converts the notation of testdata/wire/README.md to what msgpack returns."""
    if isinstance(value, list):
        return [untag(v) for v in value]
    if isinstance(value, dict):
        if '$bin' in value:
            return bytes.fromhex(value['$bin'])
        if '$time' in value:
            return msgpack.Timestamp(*value['$time'])
        if '$float' in value:
            return float(value['$float'])
        if '$map' in value:
            return {untag(k): untag(v) for k, v in value['$map']}
        return {k: untag(v) for k, v in value.items()}
    return value


def same(a, b):
    """Compares values; True differs from 1, 1 differs from 1.0, and NaN equals NaN."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, float) and math.isnan(a):
        return math.isnan(b)
    return a == b


def unpack(data):
    """Decodes one value like Go's codecs: keys may be integers and booleans as well."""
    return msgpack.unpackb(data, strict_map_key=False)


def says(vector, key, value):
    """Checks one part of a message against the vector."""
    assert same(value, untag(vector[key])), f'{key} is {value!r}'


@pytest.mark.parametrize('vector', vectors('messages.json') + vectors('keakon.json'))
def test_message(vector):
    message = unpack(raw(vector))
    kind = vector['kind']
    if kind == 'go-bare':
        assert message == vector['path']
        return
    path, *rest = message
    assert path == vector['path']
    assert (':' in path) == kind.startswith('py')
    if kind.startswith('go'):
        payload = rest[0] if rest else None
        if 'payload' in vector:
            assert isinstance(payload, bytes)
            says(vector, 'payload', unpack(payload))
        else:
            assert not payload
        meta = rest[1:]
    else:
        names = ['args', 'kwargs', 'retry'][: len(rest)]
        if not vector.get('foreign'):
            for name, value in zip(names, rest):
                says(vector, name, value)
            assert [n for n in ('args', 'kwargs', 'retry') if n in vector] == names
        meta = rest[3:]
    assert (kind == ('go-extended' if kind.startswith('go') else 'py-extended')) == bool(meta)
    if meta:
        says(vector, 'meta', meta[0])
        assert set(vector.get('unknown', [])) <= set(meta[0])


@pytest.mark.parametrize('vector', vectors('messages.json') + vectors('keakon.json'))
def test_message_written_again(vector):
    """The form that Go writes instead is read as the same task."""
    if 'writes' not in vector:
        return
    ours, theirs = unpack(bytes.fromhex(vector['writes'])), unpack(raw(vector))
    ours, theirs = (m if isinstance(m, list) else [m] for m in (ours, theirs))
    if ':' in ours[0]:
        task, again = delayed.task.PyTask(*theirs), delayed.task.PyTask(*ours)
        assert task.__class__ is again.__class__
        assert (task._func_path, list(task._args), task._kwargs, task._retry) == (
            again._func_path,
            list(again._args),
            again._kwargs,
            again._retry,
        )
    else:
        assert ours[0] == theirs[0]
        assert (ours[1:] or [None])[0] == (theirs[1:] or [None])[0]


@pytest.mark.parametrize('vector', vectors('messages.json') + vectors('keakon.json'))
def test_message_cut_off(vector):
    data = raw(vector)
    for n in range(len(data)):
        with pytest.raises(ValueError):
            unpack(data[:n])


@pytest.mark.parametrize(
    'vector', [v for v in vectors('messages.json') + vectors('keakon.json') if v.values[0]['kind'] == 'py']
)
def test_python_task_is_read_by_the_package(vector):
    """The real worker reads these bytes; it writes the same ones, without defaults at the end."""
    task = delayed.task.PyTask.deserialize(raw(vector))
    assert task._func_path == vector['path']
    assert task._retry == vector.get('retry', 0)
    if not vector.get('foreign'):
        assert same(list(task._args), untag(vector.get('args')) or [])
        assert same(task._kwargs, untag(vector.get('kwargs')) or {})
    task._data = None
    ours = vector.get('writes', vector['hex'])
    if 'nil for arguments' not in vector['name']:  # Go keeps nil, Python makes it an empty list
        assert task.serialize().hex() == ours


@pytest.mark.parametrize('vector', [v for v in vectors('messages.json') if v.values[0]['kind'] == 'py-extended'])
def test_python_worker_breaks_on_meta(vector):
    """This is why extended Python tasks need a queue that is opened for them."""
    with pytest.raises(TypeError):
        delayed.task.PyTask.deserialize(raw(vector))


def some_value(r, depth=0):
    kind = r.randrange(9 if depth < 4 else 6)
    if kind == 0:
        return r.choice([None, True, False, 1.5, float('inf')])
    if kind == 1:
        return r.choice([1, -1]) * r.getrandbits(r.randrange(1, 66))
    if kind == 2:
        return ''.join(chr(r.choice([65, 0, 233, 0x20AC, 0x1F600, 0xD800])) for _ in range(r.randrange(5)))
    if kind == 3:
        return r.randbytes(r.randrange(40))
    if kind == 4:
        return r.choice(
            [datetime.datetime.now(datetime.timezone.utc), msgpack.Timestamp(-(1 << 63), 5), msgpack.ExtType(5, b'x')]
        )
    if kind == 5:
        return r.choice([b'', '', 0, 1 << 63, -(1 << 63)])
    if kind == 6:
        return [some_value(r, depth + 1) for _ in range(r.randrange(4))]
    keys = [some_value(r, 9) for _ in range(r.randrange(4))]
    return {k: some_value(r, depth + 1) for k in keys if not isinstance(k, (dict, list))}


def test_keakon_reads_what_a_legacy_queue_accepts():
    accepted = refused = 0
    for seed in range(1000):
        r = random.Random(seed)
        c = Call('m:f', tuple(some_value(r) for _ in range(r.randrange(4))), {'k': some_value(r)} if seed % 2 else {})
        options = Options().merged(retry=r.choice([None, 0, 5, -1]))
        try:
            packed = Stamp(options, 0, legacy=True).packed(c)
        except TypeError:
            refused += 1
            continue
        accepted += 1
        task = delayed.task.PyTask.deserialize(packed.message)
        assert (task._func_path, len(task._args)) == ('m:f', len(c.args))
        task._data = None
        task.serialize()
    assert accepted > 100
    assert refused > 100


@pytest.mark.parametrize('vector', [v for v in vectors('keakon.json') if '$func' not in str(v.values[0]['call'])])
def test_keakon_bytes(vector):
    cls = getattr(delayed.task, vector['class'])
    assert cls(**untag(vector['call'])).serialize().hex() == vector['hex']


def test_keakon_file_is_what_the_generator_prints():
    module = generator()
    on_disk = json.loads((WIRE / 'keakon.json').read_text(encoding='utf-8'))
    printed = json.loads(module.text())
    assert printed['vectors'] == on_disk['vectors']
    assert printed['package'] == on_disk['package'] == 'delayed'


@pytest.mark.parametrize('vector', vectors('values.json'))
def test_value(vector):
    if 'value' not in vector:
        assert vector['error']
        return
    value = untag(vector['value'])
    assert same(unpack(raw(vector)), value)
    if vector.get('packs', True):
        assert msgpack.packb(value).hex() == vector['hex']
    else:
        assert msgpack.packb(value).hex() != vector['hex']
    if 'writes' in vector and 'error' not in vector:
        unpack(bytes.fromhex(vector['writes']))


@pytest.mark.parametrize('vector', vectors('hostile.json'))
def test_hostile(vector):
    """The file says which of these bytes plain msgpack accepts."""
    if vector['msgpack'] == 'reads':
        msgpack.unpackb(raw(vector))
    else:
        with pytest.raises((ValueError, RecursionError)):
            msgpack.unpackb(raw(vector))
