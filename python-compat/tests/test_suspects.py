"""Tasks that were in hand when workers died: which run together, which run alone, and what Redis is told about it.

And which workers are dead.
"""

import threading
import time
import types

import msgpack
import pytest
from working import control, left, ran, wait_for

from godelayed.registry import Function, Registry
from godelayed.worker import Worker, fetch, mover, scheduler, suspects, sweep
from godelayed.worker.contact import Contact
from godelayed.worker.executors import suspects_held
from godelayed.worker.fetch import Waiter
from godelayed.worker.link import RefusedError, UnansweredError
from godelayed.worker.sweep import Sweeping

WAIT = 60


class Tasks:
    """Functions of a worker in the test's own process: each notes that it has started, and waits for the test."""

    def __init__(self):
        self.registry = Registry()
        self.registry.add(Function('t:hold', self.hold))
        self.registry.add(Function('t:count', self.count))
        self.ran, self.mu, self.now, self.most = [], threading.Lock(), 0, 0
        self._go, self._over = {}, False

    def go(self, name):
        with self.mu:
            event = self._go.setdefault(name, threading.Event())
            if self._over:
                event.set()
            return event

    def end(self):
        """Lets all tasks end, also later ones."""
        with self.mu:
            self._over = True
            for event in self._go.values():
                event.set()

    def hold(self, name):
        self.ran.append('+' + name)
        assert self.go(name).wait(WAIT)
        self.ran.append('-' + name)

    def count(self):
        with self.mu:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.01)  # the task's work
        with self.mu:
            self.now -= 1
            self.ran.append('counted')

    def sees(self, *what):
        wait_for(
            lambda: [w for w in self.ran if w in what] == list(what), lambda: f'waited for {what}, found {self.ran}'
        )


@pytest.fixture
def tasks():
    return Tasks()


@pytest.fixture
def work(redis, tasks):
    """Runs workers in threads of this process."""
    running = []

    def work(**settings):
        w = Worker(
            redis,
            ['q'],
            registry=tasks.registry,
            **{'processes': False, 'concurrency': 4, 'grace': 0, 'cancel_grace': 0, **settings},
        )
        errors = []

        def run():
            try:
                w.run()
            except Exception as e:
                errors.append(e)

        t = threading.Thread(target=run)
        t.start()
        running.append((w, t))
        w.wait = lambda: (t.join(WAIT), errors)[1]
        return w

    yield work
    tasks.end()
    for w, t in running:
        w.quiet()
        # A worker that is stopped while tasks run lives on in this process, and would register again in the next tests.
        wait_for(lambda w=w: not w.busy, 'its tasks to end')
        w.stop()
        t.join(WAIT)
        assert not t.is_alive()
    wait_for(lambda: 'godelayed-heartbeat' not in {t.name for t in threading.enumerate()}, 'the heartbeats to end')


def died(redis, deaths, path, *args, alone=0, to='q', hours=0, tell=True):
    """Enqueues a call as if it had been in hand when that many workers died, the last one that many hours ago, and
    wakes the worker."""
    meta = {'id': f'{path} {args} {time.time_ns()}', 'd': deaths, 'da': time.time_ns() // 1_000_000 - hours * 3_600_000}
    redis.rpush(to, msgpack.packb([path, list(args), {}, 0, {**meta, 'al': alone} if alone else meta]))
    if tell:
        redis.rpush(to + '_noti', 1)


@pytest.mark.parametrize(
    ('executors', 'held'),
    [
        (1, [1, 1, 1, 1]),
        (4, [4, 4, 1, 1]),
        (10, [10, 10, 2, 1]),
        (50, [50, 50, 12, 3, 1]),
        (100, [100, 100, 25, 6, 1, 1]),
    ],
)
def test_how_many_a_worker_holds(executors, held):
    assert [suspects_held(executors, deaths) for deaths in range(len(held))] == held
    assert suspects_held(executors, 1 << 31) == 1


@pytest.mark.parametrize(('deaths', 'most'), [(1, 8), (2, 2), (3, 1)])
def test_suspects_run_as_their_deaths_allow(redis, tasks, work, deaths, most):
    for _ in range(16):
        died(redis, deaths, 't:count')
    w = work(concurrency=8, grace=WAIT)
    tasks.sees(*['counted'] * 16)
    w.stop()
    assert w.wait() == []
    assert tasks.most <= most
    assert tasks.most > 1 or most == 1
    assert left(redis) == set()


@pytest.mark.parametrize(('hours', 'alone'), [(71, True), (73, False)])
def test_deaths_make_suspect_for_72_hours(q, redis, tasks, work, hours, alone):
    died(redis, 3, 't:hold', 'old', hours=hours)
    w = work(concurrency=8, grace=WAIT)
    tasks.sees('+old')
    assert (w._executors.lone is not None) == alone
    tasks.go('old').set()
    tasks.sees('+old', '-old')


@pytest.mark.parametrize(('alone', 'most'), [(0, 1), (3, 4)])
def test_processes_run_what_died_alone_beside_others(redis, start, alone, most):
    """A process that dies takes no other task with it, so only deaths with others make a task suspect there."""
    for _ in range(12):
        died(redis, 3, 'worker_tasks:crowd', 'n', alone=alone)
    w = start('--concurrency', '4', '--stop-when-empty')
    w.ends()
    found = [int(line.split()[1]) for line in ran(redis)]
    assert len(found) == 12
    assert max(found) <= most
    assert left(redis) == set()


def claims_of(redis, w):
    return {k.decode(): v.decode() for k, v in redis.hgetall(f'q_claims:{w.id}').items()}


def tokens_of(redis, w):
    return [k.decode() for k in redis.hkeys(f'q_processing:{w.id}')]


def test_lone_task(q, redis, tasks, work, monkeypatch):
    """It starts when nothing else is in hand, nothing starts while it runs, and Redis knows that before."""
    monkeypatch.setattr(suspects, 'PATIENCE', WAIT)
    w = work()
    q.delay('t:hold', 'busy')
    tasks.sees('+busy')
    died(redis, 9, 't:hold', 'lone')
    wait_for(lambda: w._fetcher.suspects.lone, 'it to be in hand')
    look, looks = w._intake.in_hand, []
    monkeypatch.setattr(w._intake, 'in_hand', lambda: looks.append(1) or look())
    wait_for(lambda: len(looks) > 2, 'some looks whether it may start')
    assert tasks.ran == ['+busy']
    q.delay('t:hold', 'fresh')
    tasks.go('busy').set()
    tasks.sees('+busy', '-busy', '+lone')
    assert [claims_of(redis, w)['alone']] == tokens_of(redis, w)
    assert redis.llen('q') == 1
    tasks.go('lone').set()
    tasks.sees('+busy', '-busy', '+lone', '-lone', '+fresh')
    assert claims_of(redis, w).get('alone') not in tokens_of(redis, w)
    tasks.go('fresh').set()
    wait_for(lambda: not tokens_of(redis, w), 'the end')


def test_suspect_is_alone_until_another_comes(q, redis, tasks, work):
    w = work()
    died(redis, 1, 't:hold', 'suspect')
    tasks.sees('+suspect')
    assert [claims_of(redis, w)['alone']] == tokens_of(redis, w)
    q.delay('t:hold', 'fresh')
    tasks.sees('+suspect', '+fresh')
    assert 'alone' not in claims_of(redis, w)


def test_note_of_one_that_has_ended_is_taken_back_before_others_start(q, redis, tasks, work, monkeypatch):
    """Redis may not know yet that the lone task has ended: if the worker died then, that task would seem to have died
    alone."""
    w = work()
    died(redis, 1, 't:hold', 'suspect')
    tasks.sees('+suspect')
    lane = w._lanes[0]
    monkeypatch.setattr(lane, 'take_done', list)
    tasks.go('suspect').set()
    tasks.sees('+suspect', '-suspect')
    q.delay('t:hold', 'fresh')
    tasks.sees('+suspect', '-suspect', '+fresh')
    assert 'alone' not in claims_of(redis, w)
    monkeypatch.undo()


def test_lone_task_starts_once(redis, tasks, work, monkeypatch):
    """A worker that learns of another suspect while one runs alone does not start the latter again."""
    w = work()
    wait_for(lambda: redis.info('clients')['blocked_clients'], 'the worker to wait')
    died(redis, 9, 't:hold', 'lone', to='q_suspects', tell=False)
    w._fetcher.nudge(w._lanes[0], suspects=True)
    tasks.sees('+lone')
    died(redis, 9, 't:hold', 'next', to='q_suspects')
    wait_for(lambda: redis.llen('q_suspects_noti') == 1, 'the worker to be told, and to put that back')
    look, looks = w._fetcher.suspects.handle_lone, []
    monkeypatch.setattr(w._fetcher.suspects, 'handle_lone', lambda: looks.append(1) or look())
    for n in range(1, 4):
        w._fetcher.signal()
        wait_for(lambda n=n: len(looks) >= n, 'the worker to look')
    tasks.go('lone').set()
    tasks.sees('+lone', '-lone', '+next')
    tasks.go('next').set()
    wait_for(lambda: not tokens_of(redis, w), 'the end')


def test_lone_task_does_not_stop_a_worker(q, redis, tasks, work, monkeypatch):
    """A worker whose tasks do not end stops waiting for them, gives the lone task back, and takes others again."""
    monkeypatch.setattr(suspects, 'PATIENCE', 1.0)  # as long as this, waits leave suspects out afterwards
    monkeypatch.setattr(fetch, 'WAIT_TIME', 3600)  # it is taken once more without the end of a wait
    monkeypatch.setattr(mover, '_INTERVAL', 3600.0)  # and without a look of the mover
    monkeypatch.setattr(scheduler, '_LATER', 3600.0)
    w = work()
    q.delay('t:hold', 'busy')
    tasks.sees('+busy')
    died(redis, 9, 't:hold', 'lone')
    wait_for(lambda: w._fetcher.suspects.lone, 'it to be in hand')
    q.delay('t:hold', 'fresh')
    tasks.sees('+busy', '+fresh')
    for name in 'busy', 'fresh':
        tasks.go(name).set()
    wait_for(lambda: '+lone' in tasks.ran, 'the lone task')
    assert w._fetcher.suspects.patience > 1.0
    tasks.go('lone').set()
    wait_for(lambda: w._fetcher.suspects.patience == 1.0, 'the patience that the next one has')


def test_suspects_do_not_hold_up_others(q, redis, tasks, work):
    for i in range(50):
        died(redis, 2, 't:hold', f's{i}')
    work(concurrency=8)
    wait_for(lambda: len(tasks.ran) == 2, 'two of them')
    wait_for(lambda: redis.llen('q') == 0 and redis.llen('q_suspects') == 48, 'the others to be set apart')
    assert len(q) == 48
    for i in range(20):
        tasks.go(f'f{i}').set()
        q.delay('t:hold', f'f{i}')
        tasks.sees(f'+f{i}', f'-f{i}')
    assert len([name for name in tasks.ran if name[1] == 's']) == 2


def test_lone_task_is_given_back_at_the_stop(q, redis, tasks, work, monkeypatch):
    monkeypatch.setattr(suspects, 'PATIENCE', WAIT)
    w = work(grace=WAIT)
    q.delay('t:hold', 'busy')
    tasks.sees('+busy')
    died(redis, 9, 't:hold', 'lone')
    wait_for(lambda: w._fetcher.suspects.lone, 'it to be in hand')
    w.stop()
    wait_for(lambda: len(tokens_of(redis, w)) == 1 and len(q) == 1, 'it to be given back')
    tasks.go('busy').set()
    assert w.wait() == []
    assert tasks.ran == ['+busy', '-busy']


def test_stop_is_no_death(q, redis, tasks, work, start):
    """A worker that stops while its tasks run tells Redis so: tasks that it leaves behind have not died."""
    w = work(sweep=False)
    q.delay('t:hold', 'stubborn')
    tasks.sees('+stubborn')
    w.stop()
    assert 't:hold' in str(w.wait())
    wait_for(lambda: claims_of(redis, w).get('stopped') == '1', 'Redis to be told')
    w._slots[0].heartbeat.stop()  # as if the process had been killed
    redis.delete(f'q_worker:{w.id}')
    start('--heartbeat-life', '1')  # this worker parks the task, because it does not know the function
    wait_for(lambda: redis.zcard('q_parked'), 'the task to be swept')
    assert 'd' not in msgpack.unpackb(redis.hvals('q_tasks')[0])[4]
    tasks.go('stubborn').set()


def test_length_counts_suspects(redis, queue):
    q = queue('q')
    redis.rpush('q', msgpack.packb(['a:b']))
    redis.rpush('q_suspects', b'', b'')
    redis.rpush('q_noti', 1)
    redis.rpush('q_suspects_noti', 1, 1)
    assert len(q) == 3
    redis.delete('q_suspects', 'q_suspects_noti')


# Waking.


def test_resumed_queue_wakes(q, redis, tasks, work, monkeypatch):
    """A wait that began while the queue was paused does not include it. Neither its end nor a mover may be needed."""
    monkeypatch.setattr(fetch, 'WAIT_TIME', 3600)
    monkeypatch.setattr(mover, '_INTERVAL', 3600.0)
    monkeypatch.setattr(scheduler, '_LATER', 3600.0)
    w = work()
    wait_for(lambda: w._fetcher.waiters[0].blocking, 'the first wait')
    lane = w._lanes[0]
    for i in range(5):
        control(redis, 'paused', 'now')
        wait_for(lambda: lane.paused, 'the pause')
        redis.rpush('q_wake', 1)  # so that it begins a new wait
        wait_for(
            lambda: not redis.exists('q_wake') and w._fetcher.waiters[0].blocking and not w._fetcher.waiters[0].on,
            'the next wait',
        )
        control(redis, 'paused', '')
        wait_for(lambda: w._fetcher.waiters[0].on == [lane], 'another wait')
        tasks.go(str(i)).set()
        q.delay('t:hold', str(i))
        tasks.sees(f'+{i}', f'-{i}')
    redis.delete('q_rewait:' + w.id)


def test_wait_is_ended_once(monkeypatch):
    told = []
    lanes = []
    for name in ('a', 'b'):
        keys = types.SimpleNamespace(
            noti=name + '_noti', suspects_noti=name + '_suspects_noti', wake=name + '_wake', rewait=name + '_rewait:'
        )
        store = types.SimpleNamespace(
            source=None, worker='w', keys=keys, link=lambda: None, rewait=lambda link, life: told.append(life)
        )
        lanes.append(types.SimpleNamespace(store=store))
    w = Waiter(lanes, None)
    w.arm(lanes[:1], True)
    assert w._arm.get() == ['a_noti', 'a_suspects_noti', 'a_wake', 'b_wake', 'a_rewait:w']
    w.renew(lanes[:1])
    assert told == []
    w.renew(lanes)
    w.renew(lanes)
    assert told == [10_000]
    w.arm(lanes, False)
    assert w._arm.get() == ['a_noti', 'b_noti', 'a_wake', 'b_wake', 'a_rewait:w']
    w.renew(lanes)
    assert told == [10_000]


def test_failed_waits_back_off(redis, tasks, work):
    """If a key on which a worker waits has the wrong type, that costs no more than the back-off allows, even while
    claims succeed."""
    redis.set('q_wake', 'another type')
    w = work()
    backoff, i = w._fetcher.waiters[0].backoff, 0
    while backoff._failures < 5:
        assert i < 50, 'successful claims undo what failed waits have set'
        tasks.go(str(i)).set()
        redis.rpush('q', msgpack.packb(['t:hold', [str(i)]]))  # without a notification, so that no wait succeeds
        w._slots[0].mover.now()
        tasks.sees(f'+{i}', f'-{i}')
        i += 1
    assert i > 1
    redis.delete('q_wake')


def test_recovered_waits():
    """A notification that Redis finds before it looks at a key of the wrong type does not show that the next wait will
    succeed."""
    lanes = [
        types.SimpleNamespace(
            store=types.SimpleNamespace(
                source=None,
                worker='w',
                link=lambda: None,
                keys=types.SimpleNamespace(
                    noti='a_noti', suspects_noti='a_suspects_noti', wake='a_wake', rewait='a_rewait:'
                ),
            )
        )
    ]
    for error, key, after, recovered in [
        (RefusedError('WRONGTYPE'), b'a_noti', 1, False),
        (RefusedError('WRONGTYPE'), b'a_wake', 1, False),
        (RefusedError('WRONGTYPE'), None, 1, True),
        (RefusedError('WRONGTYPE'), b'a_rewait:w', 1, True),
        (RefusedError('WRONGTYPE'), b'a_noti', 11, True),
        (UnansweredError('broken'), b'a_noti', 1, True),
    ]:
        w = Waiter(lanes, None)
        w.failed(error, 1000.0)
        assert w.until > 1000
        assert w.recovered(key, 1000.0 + after) is recovered, (error, key, after)


# Which workers are dead.


class Sight:
    """What a sweeper sees of a queue, by a clock that the test sets."""

    name = 'q'

    def __init__(self, monkeypatch, interval=8.0, life=4.0):
        self.clock, self.left = 1000.0, {}
        monkeypatch.setattr(time, 'monotonic', lambda: self.clock)
        self.contact = Contact(life)
        self.sweeping = Sweeping([self], 'own', life, interval, self.contact, 1, 1)
        with self.contact.call():
            pass

    def link(self):
        return types.SimpleNamespace()

    def lifetimes(self, link, workers):
        return [self.left[w] for w in workers]

    def look(self):
        self.sweeping._next = self.sweeping.interval
        return self.sweeping._judge(self, ['own', *self.left])


def test_looks_follow_the_heartbeats(monkeypatch):
    s = Sight(monkeypatch)
    assert s.sweeping.interval == 4.0  # no longer than a heartbeat lives
    s.left = {'a': 3.0, 'b': 1.5}
    assert s.look() == []
    assert s.sweeping._next == pytest.approx(1.52)
    s.left = {'a': 1.5, 'b': -0.002}
    assert s.look() == []
    assert s.sweeping._next == pytest.approx(1.5)  # a quarter of the life and half a second
    s.clock += 1.49
    assert s.look() == []
    s.clock += 0.02
    assert s.look() == ['b']


def test_missing_heartbeats_of_another_server_say_nothing(monkeypatch):
    """The heartbeats may never have been written there; workers renew them first."""
    s = Sight(monkeypatch)
    server = b'a'
    s.sweeping.link = types.SimpleNamespace(open=lambda: False, do=lambda *_: b'# Server\r\nrun_id:' + server + b'\r\n')
    monkeypatch.setattr(sweep, 'survey', lambda *_: ([], None))
    s.sweeping.sweep()
    since = s.contact.unbroken()
    assert since is not None
    s.clock += 1
    s.sweeping.sweep()
    assert s.contact.unbroken() == since
    server = b'b'
    s.sweeping.sweep()
    assert s.contact.unbroken() == s.clock


def test_who_was_seen_again_or_while_contact_was_lost_is_not_dead(monkeypatch):
    s = Sight(monkeypatch)
    s.left = {'a': -0.002}
    assert s.look() == []
    s.clock += 1
    s.left = {'a': 4.0}
    assert s.look() == []
    s.clock += 1
    s.left = {'a': -0.002}
    assert s.look() == []  # missing for the first time again
    s.clock += 1.4
    s.contact.broken()
    assert s.look() == []  # again
    s.clock += 1.49
    assert s.look() == []
    s.clock += 0.02
    assert s.look() == ['a']
