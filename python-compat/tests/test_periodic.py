"""Periodic entries: set at run time, declared in code, and their ticks."""

import datetime
import types

import msgpack
import pytest
from producing import GO, PY, pending
from working import runs, wait_for

import godelayed
from godelayed import ArgumentsError, Delayed, DelayedError, DuplicateError, NoEntryError, call
from godelayed.producer import Settings
from godelayed.registry import Registry
from godelayed.worker.entries import Record
from godelayed.worker.link import Link, RefusedError, Source
from godelayed.worker.scheduler import Scheduler, declarations


@pytest.fixture
def periodic(queue):
    return queue().periodic


def entry(redis, name, queue='mail'):
    return Record(name, redis.hget(f'{queue}_periodic', name))


def test_an_entry_is_set_changed_and_removed(periodic, redis):
    heard = redis.pubsub()
    heard.subscribe('mail_signals')
    heard.get_message(timeout=10)
    until = datetime.datetime(2100, 1, 1, tzinfo=datetime.timezone.utc)
    periodic.set('b', '30 7 * * mon-fri', call(PY, 42, lang='de'), zone='Europe/Berlin', jitter=60, until=until)
    assert heard.get_message(timeout=10)['data'] == b'periodic'
    heard.close()
    periodic.set('a', '@every 1h', call(GO, 1), overlap='skip', catch_up=-5, skip_clock_gap=True)
    a, b = periodic.list()
    assert (a.name, a.spec, a.function, a.overlap, a.catch_up, a.skip_clock_gap) == (
        'a',
        '@every 1h',
        GO,
        'skip',
        -1,
        True,
    )
    assert (a.next.tzinfo, a.next.minute, a.next > a.previous) == (datetime.timezone.utc, 0, True)
    assert (b.zone, b.jitter, b.until, b.owner, b.paused, b.waiting) == ('Europe/Berlin', 60.0, until, '', False, False)
    assert [t.strftime('%H:%M') for t in b.ticks(3)] == ['07:30'] * 3
    assert b.ticks(3)[0] == b.next
    assert redis.zscore('mail_ticks', 'a') == a.next.timestamp() * 1000
    periodic.set('b', '@daily')  # keeps the task
    assert periodic.list()[1].function == PY
    periodic.pause('b')
    assert (periodic.list()[1].paused, periodic.list()[1].next) == (True, None)
    assert redis.zscore('mail_ticks', 'b') is None
    periodic.resume('b')
    assert periodic.list()[1].next.strftime('%H:%M') == '00:00'
    periodic.remove('b')
    periodic.remove('a')
    assert not [k for k in redis.keys('mail_*') if b'mode' not in k and b'queues' not in k]


def test_what_an_entry_cannot_be(periodic, queue):
    for args, how, why in (
        (('e', '@daily'), {}, 'is new: expected a call'),
        (('e', 'daily', call(PY)), {}, 'expected five fields'),
        (('e', '@daily', call(PY)), {'overlap': 'never'}, 'expected one of allow, skip, queue'),
        (('e', '@daily', call(PY)), {'catch_up': 1.5}, 'expected an int'),
        (('e', '@daily', call(PY)), {'zone': 'Local'}, 'differs between machines'),
        (('e', '@daily', call(PY)), {'until': datetime.datetime(2030, 1, 1)}, 'expected a datetime with a time zone'),
        (('e', '@daily', call(PY)), {'every': 5}, "unknown argument 'every'"),
    ):
        with pytest.raises(ArgumentsError, match=why):
            periodic.set(*args, **how)
    for options, why in (
        ({'countdown': 5}, 'leave it out, or use jitter'),
        ({'task_id': 'x'}, 'an id of its own'),
        ({'unique': 5}, 'is its overlap'),
        ({'front': True}, 'join the end'),
        ({'deadline': datetime.datetime(2100, 1, 1, tzinfo=datetime.timezone.utc)}, 'one moment cannot hold'),
    ):
        with pytest.raises(ArgumentsError, match=f"periodic entry 'e': option {next(iter(options))}: .*{why}"):
            queue().options(**options).periodic.set('e', '@daily', call(PY))
    with pytest.raises(ArgumentsError, match='options but no call'):
        queue().options(timeout=5).periodic.set('e', '@daily')
    with pytest.raises(ArgumentsError, match='leave out overlap'):
        queue('plain', legacy=True).periodic.set('e', '@daily', call(PY), overlap='skip')
    for method in ('pause', 'resume', 'remove', 'run_now'):
        with pytest.raises(NoEntryError, match="queue 'mail' has no periodic entry 'e'"):
            getattr(periodic, method)('e')


def test_an_entry_that_cannot_be_read_is_named(periodic, redis):
    redis.hset('mail_periodic', 'odd', b'x')
    with pytest.raises(DelayedError, match="periodic entry 'odd' cannot be read"):
        periodic.list()


def test_an_entry_runs_now_unless_its_task_is_not_over(queue, redis):
    q = queue().options(headers={'a': 'b'}, ttl=60)
    q.periodic.set('e', '@yearly', call(PY, 1), overlap='skip')
    ref = q.periodic.run_now('e')
    with pytest.raises(DuplicateError, match='its previous task, .* is not over') as e:
        q.periodic.run_now('e')
    assert e.value.id == ref.id
    (message,) = pending(redis)
    assert message[:3] == [PY, [1], {}]
    meta = message[4]
    assert (meta['id'], meta['h'], meta['xp'] - meta['at'], meta['uk']) == (ref.id, {'a': 'b'}, 60_000, 'p:e')
    (line,) = q.periodic.history('e')
    assert (line.id, line.skipped, line.tick.year > 2000) == (ref.id, '', True)


@pytest.fixture
def scheduler(redis):
    """Makes schedulers of the queue q."""
    links = []

    def make(*declared):
        links.append(Link(Source(redis)))
        return Scheduler(Settings('q', '', False), links[-1], declared, types.SimpleNamespace(pulse='1'))

    yield make
    for link in links:
        link.hang_up()


def overdue(redis, name, ms):
    """Makes the last tick of an entry of q lie so many ms back."""
    raw = redis.hget('q_periodic', name)
    r = Record(name, raw)
    seconds, micro = redis.time()
    r.prev = seconds * 1000 + micro // 1000 - ms
    r.next = r.timetable().next(r.prev)
    redis.hset('q_periodic', name, r.encode())
    redis.zadd('q_ticks', {name: r.next})


def test_a_tick_is_enqueued_once_whoever_looks(redis, q, scheduler):
    q.periodic.set('e', '@every 1s', call(PY, 1))
    overdue(redis, 'e', 1500)
    one, other = scheduler(), scheduler()
    assert 0 < one.look() <= 1
    before = len(q)
    assert before >= 1
    other.look()
    history = q.periodic.history('e')
    assert len({h.tick for h in history}) == len(history) == len(q)
    assert [m[4]['id'] for m in pending(redis, 'q')][::-1] == [h.id for h in history]
    assert redis.llen('q_noti') == len(q)


def test_missed_ticks_and_those_that_must_wait(redis, q, scheduler):
    q.periodic.set('e', '@every 1h', call(PY), overlap='queue', catch_up=3)
    overdue(redis, 'e', 5 * 3600 * 1000)
    s = scheduler()
    assert s.look() == 1.0  # it looks again soon whether the task has ended
    assert [h.skipped for h in q.periodic.history('e')] == ['overlap', 'queued', '', 'missed']
    assert (len(q), q.periodic.list()[0].waiting) == (1, True)
    assert s.look() == 1.0
    assert len(q) == 1
    redis.delete('q_locks')  # as the end of the task does
    s.look()
    assert (len(q), q.periodic.list()[0].waiting) == (2, False)
    redis.delete('q_locks')


def test_an_entry_that_this_worker_cannot_read_is_left_to_others(redis, q, scheduler, caplog):
    q.periodic.set('good', '@every 1s', call(PY))
    overdue(redis, 'good', 1500)
    redis.hset('q_periodic', 'odd', b'x')
    redis.zadd('q_ticks', {'odd': 0, 'gone': 0})
    s = scheduler()
    assert s.look() <= 5
    assert len(q) >= 1
    assert redis.zscore('q_ticks', 'gone') is None
    assert redis.zscore('q_ticks', 'odd') == 0
    assert 'periodic entry odd cannot be served here' in caplog.text
    redis.delete('q_periodic', 'q_ticks')
    redis.set('q_periodic', 'of another program')
    assert s.look() == 1.0
    assert 'periodic entries: trying again' in caplog.text


@pytest.fixture
def app(redis):
    app = Delayed(redis, queue='q', owner='shop')
    app.registry = Registry()
    return app


def declare(app, *specs, version=0, legacy=False):
    """Declares entries of a task in a program of their own, and returns what its workers declare."""
    program = Delayed(app.client, queue='q', owner=app.owner, version=version)
    registry = Registry()

    def f(x=0):
        pass

    task = program.task(path='m:f', registry=registry)(f)
    for name, spec in specs:
        program.periodic(spec, name=name, args=(7,), options={'timeout': 5})(task)
    return declarations(registry, 'q')


def test_what_code_declares_is_written_and_removed(redis, q, app, scheduler):
    q.periodic.set('own', '@daily', call(PY))
    scheduler(*declare(app, ('a', '@daily'), ('b', '@hourly'))).look()
    assert [(e.name, e.owner) for e in q.periodic.list()] == [('a', 'shop'), ('b', 'shop'), ('own', '')]
    assert msgpack.unpackb(entry(redis, 'a', 'q').definition.message) == ['m:f', [7], {}, 0, {'n': 1, 'to': 5000}]
    q.periodic.set('a', '@weekly')
    q.periodic.pause('b')
    scheduler(*declare(app, ('a', '@daily'), ('b', '@yearly'))).look()
    assert [(e.spec, e.paused) for e in q.periodic.list()] == [('@weekly', False), ('@yearly', True), ('@daily', False)]
    scheduler(*declare(app, ('b', '@yearly'))).look()
    assert [e.name for e in q.periodic.list()] == ['b', 'own']


def test_what_redis_may_have_lost_is_declared_again(redis, q, app, scheduler):
    """After another registration or over another connection; what newer code has changed or added meanwhile stays."""
    s = scheduler(*declare(app, ('a', '@daily'), ('b', '@hourly')))
    s.look()
    redis.delete('q_periodic', 'q_ticks')
    scheduler(*declare(app, ('b', '@yearly'), ('c', '@weekly'))).look()
    s.look()
    assert [e.name for e in q.periodic.list()] == ['b', 'c']
    s._lane.pulse = '2'
    s.look()
    assert [(e.name, e.spec) for e in q.periodic.list()] == [('a', '@daily'), ('b', '@yearly'), ('c', '@weekly')]
    q.periodic.remove('a')
    s._link.hang_up()
    s.look()
    assert [e.name for e in q.periodic.list()] == ['a', 'b', 'c']


def test_owners_and_versions(redis, q, app, scheduler, caplog):
    scheduler(*declare(app, ('a', '@daily'), version=2)).look()
    scheduler(*declare(app, ('b', '@daily'), version=1)).look()
    assert [e.name for e in q.periodic.list()] == ['a']
    assert 'not declared: Redis knows version 2' in caplog.text
    other = Delayed(redis, queue='q', owner='other')
    scheduler(*declare(other, ('a', '@yearly'))).look()
    assert [(e.spec, e.owner) for e in q.periodic.list()] == [('@daily', 'shop')]
    assert 'shop declares it, and that stays: choose another name' in caplog.text
    scheduler(*declare(app, ('b', '@daily'), version=3)).look()
    assert [e.name for e in q.periodic.list()] == ['b']


def test_what_cannot_be_declared(app):
    task = app.task(path='m:f', registry=Registry())(lambda: None)
    app.periodic('@daily')(task)
    app.periodic('@daily')(task)  # the module is loaded again
    with pytest.raises(ArgumentsError, match="'m:f' is declared twice: give each a name of its own"):
        app.periodic('@weekly')(task)
    with pytest.raises(ArgumentsError, match='expected a task of the same application'):
        app.periodic('@daily')(lambda: None)
    with pytest.raises(ArgumentsError, match='expected the arguments'):
        app.periodic('@daily', name='x', args=(1,))(task)
    nobody = Delayed()
    with pytest.raises(ArgumentsError, match='the application has no owner'):
        nobody.periodic('@daily')(nobody.task(path='m:f', registry=Registry())(lambda: None))
    for how in ({'version': 1}, {'owner': 'x' * 129}, {'owner': 'x', 'version': -1}):
        with pytest.raises(ArgumentsError, match='version is|owner '):
            Delayed(**how)


def test_a_worker_ticks_what_its_modules_declare(q, redis, start):
    w = start(module='periodic_tasks')
    runs(redis, 'tick 1 x=2')
    wait_for(lambda: q.periodic.list(), 'the entry')
    q.periodic.pause('every')
    q.periodic.set('set', '@every 1s', call('periodic_tasks:tick', 2))
    wait_for(lambda: any(h.skipped == '' for h in q.periodic.history('set')), 'a tick of an entry set at run time')
    q.periodic.remove('set')
    w.stop()
    assert [e.name for e in q.periodic.list()] == ['every']


def test_a_full_redis_is_told_of(scheduler, q, redis, monkeypatch, caplog):
    q.periodic.set('e', '@every 1s', call(PY))
    overdue(redis, 'e', 1500)
    s = scheduler()
    monkeypatch.setattr(s._agenda.link._link, 'run', lambda *_: (_ for _ in ()).throw(RefusedError('OOM')))
    assert s.look() == 1.0
    assert 'OOM' in caplog.text
    assert godelayed.Queue('q', redis).periodic.history('e') == []
