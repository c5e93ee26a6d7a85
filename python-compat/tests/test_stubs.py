"""Typed modules of Go functions: their source, that mypy checks calls with it, and what the calls send and return."""

import asyncio
import datetime
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import msgpack
import pytest
import redis as redis_py

import godelayed
from godelayed import stubs, typed
from godelayed.errors import ArgumentsError, DelayedError, WaitTimeoutError
from godelayed.restore import restore
from godelayed.values import unpack

FOLDER = Path(__file__).parent / 'stubs'
FUNCTIONS = FOLDER / 'functions.json'
UTC = datetime.timezone.utc


def listing():
    return json.loads(FUNCTIONS.read_text())


@pytest.fixture(scope='module')
def module(tmp_path_factory):
    """The module of the golden list, imported."""
    folder = tmp_path_factory.mktemp('module')
    assert stubs.main([str(FUNCTIONS), '-o', str(folder / 'golden_tasks.py')]) == 0
    sys.path.insert(0, str(folder))
    yield __import__('golden_tasks')
    sys.path.remove(str(folder))
    del sys.modules['golden_tasks']


def test_golden():
    """If the new text is right: python -m godelayed.stubs tests/stubs/functions.json -o tests/stubs/tasks.golden."""
    assert stubs.generate(listing()) == (FOLDER / 'tasks.golden').read_text()


def test_order_of_input_does_not_matter():
    shuffled = listing()
    shuffled['functions'].reverse()
    shuffled['types'] = dict(reversed(shuffled['types'].items()))
    assert stubs.generate(shuffled) == stubs.generate(listing())


def test_ruff_would_not_change_it(tmp_path):
    text = (FOLDER / 'tasks.golden').read_text()
    formatted = subprocess.run(
        [sys.executable, '-m', 'ruff', 'format', '--isolated', '--stdin-filename', 'tasks.py'],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    assert formatted.stdout == text


def mypy(folder, *files):
    """Returns the errors of mypy --strict as {(file, line): code}."""
    cache = os.environ.get('MYPY_CACHE_DIR', str(folder / 'cache'))
    done = subprocess.run(
        [
            sys.executable,
            '-m',
            'mypy',
            '--strict',
            '--no-error-summary',
            '--hide-error-context',
            '--cache-dir',
            cache,
            *files,
        ],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    found = {}
    for line in done.stdout.splitlines():
        m = re.fullmatch(r'(\w+\.py):(\d+): error: .*\[([\w-]+)\]', line)
        if m:
            found[m[1], int(m[2])] = m[3]
        else:
            assert ': note: ' in line, done.stdout + done.stderr
    assert (done.returncode == 0) == (not found), done.stdout + done.stderr
    return found


def pyright(folder):
    """Returns the lines with errors of pyright, which is strict."""
    settings = {
        'typeCheckingMode': 'strict',
        'extraPaths': [str(FOLDER.parent.parent / 'src')],
        'stubPath': str(FOLDER.parent.parent / 'typings'),
        # What stubs of Go functions have and redis-py has not.
        'reportUnknownMemberType': False,
        'reportUnusedFunction': False,
        'reportMissingModuleSource': False,
    }
    (folder / 'pyrightconfig.json').write_text(json.dumps(settings))
    done = subprocess.run(
        [sys.executable, '-m', 'pyright', '--outputjson', '--pythonpath', sys.executable],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    return {
        (Path(e['file']).name, e['range']['start']['line'] + 1): e['message']
        for e in json.loads(done.stdout)['generalDiagnostics']
    }


@pytest.fixture
def calls(tmp_path):
    """A folder with calls, and {(file, line): mypy's code} of those that are wrong."""
    for name in ('good.py', 'bad.py'):
        (tmp_path / name).write_text((FOLDER / name).read_text())
    (tmp_path / 'tasks.py').write_text((FOLDER / 'tasks.golden').read_text())
    wrong = {}
    for number, line in enumerate((FOLDER / 'bad.py').read_text().splitlines(), 1):
        m = re.search(r'# error: ([\w-]+)$', line)
        if m:
            wrong['bad.py', number] = m[1]
    assert len(wrong) > 10
    return tmp_path, wrong


def test_mypy_checks_calls(calls):
    """good.py has no errors; in bad.py exactly the lines with a comment that names an error code have that error."""
    folder, wrong = calls
    assert mypy(folder, 'tasks.py', 'good.py', 'bad.py') == wrong


def test_pyright_checks_calls(calls):
    folder, wrong = calls
    found = pyright(folder)
    assert found.keys() == wrong.keys(), found


def sent(redis, queue='q'):
    """Takes the next message of a queue: the path, the arguments, and meta."""
    redis.lpop(queue + '_noti')
    path, payload, meta = msgpack.unpackb(redis.lpop(queue))
    return path, msgpack.unpackb(payload, timestamp=3) if payload else [], meta


def test_delay(module, redis):
    tasks = module.Tasks(godelayed.Queue('q', redis))
    ref = tasks.app_mail.welcome.delay(42, 'en')
    path, arguments, meta = sent(redis)
    assert (path, arguments, meta['id'], meta['n']) == ('example.com/app/mail.Welcome', [42, 'en'], ref.id, 2)
    assert tasks.app_mail.welcome.ref('x').id == 'x'

    now = datetime.datetime(2026, 1, 2, tzinfo=UTC)
    tasks.app_mail.digest.options(retry=7).delay(1, now, 'a', 'b')
    path, arguments, meta = sent(redis)
    assert (arguments, meta['n'], meta['mr']) == ([1, now, 'a', 'b'], 4, 7)

    address = module.Address(street='s', zip_code='z', class_=None)
    order = module.Order(id=1, billing=address, shipping=None, lines=[module.Line('nut', 0.5)], placed=now)
    tasks.app_mail.place.delay(order)
    assert sent(redis)[1] == [
        {
            'ID': 1,
            'Billing': {'street': 's', 'zip-code': 'z', 'class': None},
            'Shipping': None,
            'Lines': [{'Article': 'nut', 'Price': 0.5}],
            'Placed': now,
            'photo': b'',
            'tags': {},
            'note': '',
        }
    ]


def test_keywords_and_absent_arguments(module, redis):
    tasks = module.Tasks(godelayed.Queue('q', redis))
    for args, kwargs, want in [
        ((1,), {}, [1]),
        ((1, 'b'), {}, [1, 'b']),
        ((), {'a': 1, 'b': 'b'}, [1, 'b']),
        ((1,), {'c': ['x'], 'b': 'b'}, [1, 'b', ['x']]),
    ]:
        tasks.late.delay(*args, **kwargs)
        path, arguments, meta = sent(redis)
        assert (path, arguments, meta['n']) == ('late', want, len(want))
    tasks.photos.scale.delay(b'p' * 16, height=1, width=2, far=None)
    assert sent(redis)[1] == [b'p' * 16, 2, 1, None]
    for args, kwargs, error in [
        ((), {}, r'late: expected the arguments \(a: .*\), found 0 of them'),
        ((1, 'b', [], 4), {}, 'found 4 of them'),
        ((1,), {'c': []}, "expected 'b' too"),
        ((1,), {'d': 1}, "unexpected keyword argument 'd'"),
        ((1,), {'b': typed.ABSENT}, 'ABSENT|_Absent'),
    ]:
        with pytest.raises(ArgumentsError, match=error):
            tasks.late.delay(*args, **kwargs)
    assert redis.llen('q') == 0


def test_call(module, redis):
    queue = godelayed.Queue('q', redis)
    tasks = module.Tasks(queue)
    queue.delay_many([tasks.app_mail.welcome.call(1, 'a'), tasks.sum.int.call(class_=1, self_=2, from_=3, lambda_=4.5)])
    assert sent(redis)[1] == [1, 'a']
    assert sent(redis)[:2] == ('sum.int', [1, 2, 3, 4.5])


def test_async(module, server):
    async def run():
        import redis.asyncio

        async with redis.asyncio.Redis.from_url(server.url) as client:
            tasks = module.AsyncTasks(godelayed.aio.Queue('q', client))
            ref = await tasks.app_mail.welcome.options(retry=1).delay(42, 'en')
            with pytest.raises(ArgumentsError):
                await tasks.app_mail.welcome.delay(42)
            assert tasks.app_mail.welcome.ref(ref.id).id == ref.id
            return ref.id

    id = asyncio.run(run())
    with server.client() as c:
        path, arguments, meta = sent(c)
    assert (path, arguments, meta['id'], meta['mr']) == ('example.com/app/mail.Welcome', [42, 'en'], id, 1)


def test_a_typed_reference_restores_what_it_waits_for(module, server, redis):
    """It returns the declared type, within the timeout."""
    tasks = module.Tasks(godelayed.Queue('q', redis))
    ref = tasks.app_mail.spread.ref('x')
    with pytest.raises(WaitTimeoutError, match='timeout of 0'):
        ref.result(0)
    raw = [9, ['s', 'z', 5], None, None, datetime.datetime(2026, 1, 2, tzinfo=UTC), None, None, 'n']
    note = {'reason': 'completed', 'result': msgpack.packb(raw, datetime=True)}
    redis.hset('q_results', 'x', msgpack.packb(note))
    redis.zadd('q_completed', {'x': 4e12})
    order = ref.result(60)
    assert (type(order), order.billing) == (module.Order, module.Address('s', 'z', 5))

    async def run():
        import redis.asyncio

        async with redis.asyncio.Redis.from_url(server.url) as client:
            tasks = module.AsyncTasks(godelayed.aio.Queue('q', client))
            ref = tasks.app_mail.spread.ref('x')
            assert await ref.result(60) == order
            assert await ref == order
            with pytest.raises(WaitTimeoutError, match='timeout of 0'):
                await tasks.app_mail.spread.ref('y').result(0)

    asyncio.run(run())


def returns(function):
    return function.returns()


def test_results(module):
    """A result of Go arrives as the declared type."""
    tasks = module.Tasks(godelayed.Queue('q', redis_py.Redis()))
    now = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    order = returns(tasks.app_mail.spread)
    billing = ['s', 'z', 5]
    raw = unpack(
        msgpack.packb([9, billing, None, None, msgpack.Timestamp(int(now.timestamp()), 678901234), None, None, 'n'])
    )
    address = module.Address('s', 'z', 5)
    assert restore(raw, order) == module.Order(9, address, None, [], now, b'', {}, 'n')
    assert restore(None, order) is None
    named = {
        'ID': 9,
        'Billing': dict(zip(('street', 'zip-code', 'class'), billing)),
        'Shipping': billing,
        'Lines': [['nut', 1]],
        'Placed': now,
    }
    assert restore(named, order) == module.Order(9, address, address, [module.Line('nut', 1.0)], now)
    trees = restore({'a': [1, [2, None, None], None]}, returns(tasks.tree.grow))
    assert trees == {'a': module.Tree(1, module.Tree(2, None, None), None)}
    assert restore([[]], 'a name') == [[]]  # the inside of a list that contains itself
    assert restore([1, [2]], returns(tasks.any.anything)) == [1, [2]]
    assert restore(None, returns(tasks.app_mail.welcome)) is None
    assert restore(None, returns(tasks.sum.int)) == b''
    assert restore([1, 2], returns(tasks.gopkg_in_mail.v3.unnamed)) == [1, 2]
    for value, function, error in [
        (['s', 'z'], tasks.app_mail.spread, 'result: expected the 8 fields of Order, found list'),
        ('x', tasks.app_mail.spread, 'expected Order, found str'),
        ({'ID': 1, 'Nonsense': 2}, tasks.app_mail.spread, 'expected the fields of Order'),
        ({'ID': 1}, tasks.app_mail.spread, 'expected all fields of Order'),
        ([9, ['s', 'z', '5'], *raw[2:]], tasks.app_mail.spread, r'result\.billing\.class_: expected int, found str'),
        ('1', tasks.app_mail.place, 'expected int, found str'),
        (True, tasks.app_mail.place, 'expected int, found bool'),
        (1, tasks.app_mail.welcome, 'expected NoneType, found int'),
        ({1: [1, None, None]}, tasks.tree.grow, 'a key of result: expected str'),
        ([1, 2.0], tasks.gopkg_in_mail.v3.unnamed, r'result\[1\]: expected int, found float'),
    ]:
        with pytest.raises(DelayedError, match=error):
            restore(value, returns(function))


@pytest.mark.parametrize(
    ('name', 'python'),
    [
        ('userID', 'user_id'),
        ('SendHTML', 'send_html'),
        ('HTMLBody', 'html_body'),
        ('userIDs', 'user_ids'),
        ('IDs', 'ids'),
        ('Sha256Sum', 'sha256_sum'),
        ('x', 'x'),
        ('_', 'n'),
        ('class', 'class_'),
        ('from_', 'from_'),
        ('zip-code', 'zip_code'),
        ('2nd', 'n2_nd'),
        ('Größe', 'größe'),
        ('日付', '日付'),
    ],
)
def test_names(name, python):
    assert stubs.snake(name) == python


@pytest.mark.parametrize(
    ('path', 'words'),
    [
        ('example.com/photos/v2.Scale', ['photos', 'scale']),
        ('example.com/photos/v10.Scale', ['photos', 'scale']),
        ('example.com/photos/v2beta.Scale', ['v2_beta', 'scale']),
        ('example.com/photos.(*Album).Scale', ['photos', 'album', 'scale']),
        ('v2.Scale', ['v2', 'scale']),
        ('scale', ['scale']),
    ],
)
def test_a_version_is_no_package(path, words):
    assert stubs._words(path) == words


def test_command(tmp_path, capsys, monkeypatch):
    out = tmp_path / 'tasks.py'
    golden = (FOLDER / 'tasks.golden').read_text()
    with FUNCTIONS.open() as f:
        monkeypatch.setattr('sys.stdin', f)
        assert stubs.main(['-']) == 0
    assert capsys.readouterr().out == golden
    assert stubs.main([str(FUNCTIONS), '-o', str(out), '--check']) == 1
    assert stubs.main([str(FUNCTIONS), '-o', str(out)]) == 0
    assert stubs.main([str(FUNCTIONS), '-o', str(out), '--check']) == 0
    capsys.readouterr()
    out.write_text('x')
    assert stubs.main([str(FUNCTIONS), '-o', str(out), '--check']) == 1
    assert 'make it anew' in capsys.readouterr().err
    for text, error in [
        ('[]', 'expected what a worker program prints'),
        ('{', 'Expecting property name'),
        ('{"version": 2, "functions": []}', 'expected version 1 of the list of functions, found 2'),
        ('{"version": 1, "functions": [{"path": "f"}]}', 'something is missing'),
        (
            '{"version": 1, "functions": [{"path": "f", "parameters": [{"go": "x", "type": {"kind": "y"}}]}]}',
            "found 'y'",
        ),
    ]:
        (tmp_path / 'f.json').write_text(text)
        assert stubs.main([str(tmp_path / 'f.json')]) == 1
        assert error in capsys.readouterr().err


def test_nothing_registered():
    text = stubs.generate({'version': 1, 'functions': []})
    assert 'class Tasks:' in text
    compile(text, 'tasks.py', 'exec')
