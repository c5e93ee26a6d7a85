"""How the command reads its arguments."""

import gc
import itertools
import os
import sys
import types

import pytest
import redis

from godelayed import ArgumentsError, cli
from godelayed.registry import Function, Registry

# Each option with the setting that it changes, and its default. No two have the same value.
OPTIONS = [
    ('--concurrency 41', 'concurrency', 41, None),
    ('--processes 0', 'processes', False, True),
    ('--timeout 42', 'timeout', 42.0, None),
    ('--kill-after 43', 'kill_after', 43.0, 3.0),
    ('--max-retry 44', 'max_retry', 44, 25),
    ('--prefetch 45', 'prefetch', 45, None),
    ('--heartbeat-life 46', 'heartbeat_life', 46.0, 15.0),
    ('--sweep-interval 47', 'sweep_interval', 47.0, 8.0),
    ('--no-sweeper', 'sweep', False, True),
    ('--no-periodic', 'periodic', False, True),
    ('--grace 48', 'grace', 48.0, 25.0),
    ('--cancel-grace 49', 'cancel_grace', 49.0, 3.0),
    ('--legacy', 'legacy', True, False),
    ('--go-queue go', 'go_queue', 'go', None),
    ('--coroutines 49', 'coroutines', 49, 100),
    ('--max-tasks 50', 'max_tasks', 50, None),
    ('--max-time 52', 'max_time', 52.0, None),
    ('--max-memory 53MiB', 'max_memory', 53 << 20, None),
    ('--max-memory-per-process 5400000', 'max_memory_per_process', 5_400_000, None),
    ('--max-tasks-per-process 51', 'max_tasks_per_process', 51, None),
    ('--stop-when-empty', 'stop_when_empty', True, False),
    ('--prefix p:', 'prefix', 'p:', ''),
    ('--pool-start gc:collect', 'pool_start', gc.collect, None),
    ('--process-start os:getpid', 'start', os.getpid, None),
]


@pytest.fixture
def settings(monkeypatch):
    """Runs the command up to the worker, and returns the arguments that the worker gets."""
    made = []
    monkeypatch.setattr(sys, 'path', list(sys.path))
    monkeypatch.setattr(cli.registry, 'default', Registry())
    cli.registry.default.add(Function('m:f', print))
    monkeypatch.setattr(cli, 'logging', types.SimpleNamespace(basicConfig=lambda **_: None))
    monkeypatch.setattr(cli, 'Worker', lambda client, queues, **settings: made.append((queues, settings)))
    monkeypatch.setattr(cli, '_await_redis', lambda *_: None)
    monkeypatch.setattr(cli, '_Program', lambda *_: types.SimpleNamespace(run=lambda: 7))

    def settings(*args):
        assert cli.main(['json', *args]) == 7
        return made.pop()

    return settings


def test_each_option_sets_what_it_says(settings):
    assert settings('--queue', 'q')[1] == {name: default for _, name, _, default in OPTIONS}
    for text, name, value, _ in OPTIONS:
        assert settings('--queue', 'q', *text.split())[1] == {**{n: d for _, n, _, d in OPTIONS}, name: value}


@pytest.mark.parametrize(('text', 'size'), [('7', 7), ('1K', 1024), ('2MiB', 2 << 20), ('3G', 3 << 30)])
def test_sizes(text, size):
    assert cli._size(text) == size


@pytest.mark.parametrize('text', ['', '-1', '1 M', '1T', '1.5G', 'MiB'])
def test_what_is_no_size(text, settings, capsys):
    with pytest.raises(SystemExit) as e:
        settings('--queue', 'q', '--max-memory', text)
    assert e.value.code == cli.USAGE
    assert 'such as 512MiB' in capsys.readouterr().err


def test_the_version(capsys):
    with pytest.raises(SystemExit) as e:
        cli.main(['--version'])
    assert e.value.code == 0
    assert capsys.readouterr().out.startswith('delayed-worker: godelayed')


@pytest.mark.parametrize('name', ['nowhere:f', 'os:nothing', 'os:sep', 'no name', ''])
def test_hooks_that_are_no_functions(settings, capsys, name):
    assert cli.main(['json', '--queue', 'q', '--pool-start', name]) == cli.USAGE
    assert f'{name!r}: expected' in capsys.readouterr().err


@pytest.mark.parametrize(
    ('args', 'queues'),
    [
        (['a', 'b'], ['a', 'b']),
        (['a:2', 'b:3'], {'a': 2, 'b': 3}),
        (['a', 'b:3'], {'a': 1, 'b': 3}),
        (['a:1'], {'a': 1}),
    ],
)
def test_queues(settings, args, queues):
    assert settings(*(word for name in args for word in ('--queue', name)))[0] == queues


@pytest.fixture
def apps(monkeypatch, tmp_path):
    """Makes a module, and returns what the worker of its tasks is given: the URL, the queues and the settings."""
    monkeypatch.setattr(sys, 'path', list(sys.path))
    monkeypatch.setattr(cli.registry, 'default', Registry())
    monkeypatch.setenv('REDIS_URL', 'redis://localhost:7/0')
    seen = []

    def start(client, queues, **settings):
        seen.append((client.connection_pool.connection_kwargs['port'], queues, settings))
        raise ArgumentsError('enough')

    monkeypatch.setattr(cli, 'Worker', start)

    def main(text, *args):
        name = f'app_{next(NUMBERS)}'
        (tmp_path / f'{name}.py').write_text(f'import godelayed\n{text}')
        sys.path.insert(0, str(tmp_path))
        code = cli.main([name, *args])
        return seen.pop() if seen else code

    return main


NUMBERS = itertools.count()  # modules are imported once
APP = "app = godelayed.Delayed('redis://localhost:8', queue='mail', prefix='p:')\n"
TASK = "@{}.task\ndef f(): pass\n@{}.task(queue='bulk')\ndef g(): pass\n"


def test_a_worker_serves_the_queues_of_its_tasks_where_their_application_is(apps):
    port, queues, settings = apps(APP + TASK.format('app', 'app'))
    assert (port, queues, settings['prefix'], settings['legacy']) == (8, ['bulk', 'mail'], 'p:', False)
    port, queues, settings = apps(
        APP + TASK.format('app', 'app'), '--redis-url', 'redis://localhost:9', '--queue', 'q', '--prefix', ''
    )
    assert (port, queues, settings['prefix']) == (9, ['q'], '')


def test_tasks_without_an_application_are_on_the_default_queue(apps):
    port, queues, settings = apps(TASK.format('godelayed', 'godelayed'))
    assert (port, queues, settings['prefix']) == (7, ['bulk', 'default'], '')


@pytest.mark.parametrize(
    ('other', 'why'),
    [
        ("godelayed.Delayed('redis://localhost:9', prefix='p:')", 'differ in url: give --redis-url'),
        ("godelayed.Delayed('redis://localhost:8', prefix='')", 'differ in prefix: give --prefix'),
    ],
)
def test_applications_of_one_worker_agree(apps, capsys, other, why):
    assert apps(f'{APP}other = {other}\n@app.task\ndef a(): pass\n@other.task\ndef b(): pass\n') == cli.USAGE
    assert why in capsys.readouterr().err


@pytest.mark.parametrize(
    ('args', 'why'),
    [
        (['a:1', 'a:2'], "queue 'a' is named twice"),
        (['a', 'a:2'], "queue 'a' is named twice"),
        (['a:b'], 'expected a whole number as weight'),
    ],
)
def test_queues_that_cannot_be(args, why):
    with pytest.raises(ArgumentsError, match=why):
        cli._queues(args)


def test_a_module_that_registers_no_function_is_no_worker(caplog, monkeypatch):
    monkeypatch.setattr(sys, 'path', list(sys.path))
    monkeypatch.setattr(cli.registry, 'default', Registry())
    monkeypatch.setattr(cli, '_await_redis', lambda *_: pytest.fail('it starts'))
    assert cli.main(['json', '--queue', 'q']) == cli.FAILED
    assert 'expected that json register some' in caplog.text


@pytest.fixture
def heard():
    """A program, and the list of what its worker was told."""
    told = []
    worker = types.SimpleNamespace(
        **{name: lambda name=name: told.append(name) for name in ('stop', 'quiet', 'pause', 'resume')}
    )
    return cli._Program(worker), told


def test_signals(heard):
    program, told = heard
    for name in ('SIGUSR2', 'SIGCONT', 'SIGTSTP', 'SIGTERM'):
        program._obey(name)
    assert told == ['pause', 'resume', 'quiet', 'stop']


@pytest.mark.parametrize('name', ['SIGINT', 'SIGTERM', 'SIGHUP'])
def test_behind_a_signal_to_stop_no_other_counts(heard, name):
    """Service managers send CONT after TERM, which is no order to resume."""
    program, told = heard
    for signal in (name, 'SIGCONT', 'SIGUSR2', 'SIGTSTP'):
        program._obey(signal)
    assert told == ['stop']


@pytest.mark.parametrize(
    ('error', 'tries'),
    [
        (redis.exceptions.AuthenticationError('invalid password'), 1),
        (redis.exceptions.ConnectionError('refused'), 2),
        (redis.exceptions.BusyLoadingError('loading'), 2),
    ],
)
def test_redis_is_waited_for_unless_time_mends_nothing(error, tries):
    answers = [error, None]

    def ping():
        answer = answers.pop(0)
        if answer is not None:
            raise answer

    client = types.SimpleNamespace(ping=ping)
    if tries == 1:
        with pytest.raises(type(error)):
            cli._await_redis(client, 60)
    else:
        cli._await_redis(client, 60)
    assert len(answers) == 2 - tries


def test_that_redis_is_waited_for_is_logged_once(monkeypatch, caplog):
    answers, pauses = [redis.exceptions.ConnectionError('refused')] * 8, []

    def ping():
        if answers:
            raise answers.pop(0)

    monkeypatch.setattr(cli.time, 'sleep', pauses.append)
    cli._await_redis(types.SimpleNamespace(ping=ping), 60)
    assert pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    assert [r.getMessage() for r in caplog.records] == ['waiting for Redis: refused']
