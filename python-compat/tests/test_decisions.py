"""Decisions of the producer that no task shows at once: which tasks go together, when it asks again, and when a task
has ended."""

import asyncio
import datetime
import threading
import types

import msgpack
import pytest
import redis as redis_py
from producing import GO
from working import wait_for

import godelayed
from godelayed import (
    ArgumentsError,
    CanceledError,
    DelayedError,
    FullError,
    Options,
    Queue,
    Ref,
    State,
    UnavailableError,
    UnknownError,
    asks,
)
from godelayed.coalescer import AsyncCoalescer, Coalescer
from godelayed.info import Found, Note, canceled
from godelayed.keys import Keys
from godelayed.link import Link, explain, run
from godelayed.producer import MAX_BATCH, MAX_CALL_BYTES, MAX_ENLISTED, MAX_FILED, Settings
from godelayed.ref import look_after, pause
from godelayed.worker.link import Link as WorkerLink
from godelayed.worker.link import RefusedError, Source

BIG = bytes(MAX_CALL_BYTES * 2 // 5)
KINDS = [([BIG] * 5, [1, 2, 2]), ([b'x'] * (MAX_BATCH + 2), [1, MAX_BATCH, 1])]


@pytest.mark.parametrize(('messages', 'sizes'), KINDS)
def test_what_goes_together_is_no_more_than_a_batch(messages, sizes):
    """The first goes alone; all others come while its call is under way."""
    sent, go = [], threading.Event()

    def send(bundle):
        go.wait(60)
        sent.append(len(bundle))

    c = Coalescer(send)
    threads = []
    for m in messages:
        threads.append(threading.Thread(target=c.enqueue, args=(m,)))
        threads[-1].start()
        if len(threads) == 1:
            wait_for(lambda: c._busy, 'the first to be under way')
    wait_for(lambda: sum(len(b.messages) for b in c._waiting) == len(messages) - 1, 'all others')
    go.set()
    for t in threads:
        t.join()
    assert sent == sizes


@pytest.mark.parametrize(('messages', 'sizes'), KINDS)
def test_what_goes_together_is_no_more_than_a_batch_in_asyncio(messages, sizes):
    sent = []

    async def main():
        come = asyncio.Event()

        async def send(bundle):
            await come.wait()
            sent.append(len(bundle))

        c = AsyncCoalescer(send)
        first = asyncio.create_task(c.enqueue(messages[0]))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        others = [asyncio.create_task(c.enqueue(m)) for m in messages[1:]]
        await asyncio.sleep(0)
        come.set()
        await asyncio.gather(first, *others)

    asyncio.run(main())
    assert sent == sizes


def test_days_of_a_timedelta_count():
    assert Options().merged(countdown=datetime.timedelta(days=2, milliseconds=5)).place == ('in', 172_800_005)
    assert Options().merged(ttl=datetime.timedelta(days=30)).extra['xp'] == 30 * 24 * 3_600_000


def look_reply(now=10, completed=None, result=None):
    return [now, None, None, None, None, completed, None, result, None]


class Scripted:
    """A link that gives these replies, one after the other, and notes which scripts ran."""

    def __init__(self, *replies):
        self.left, self.ran = list(replies), []

    async def run(self, script, keys, args):
        self.ran.append(script)
        return self.left.pop(0)


def reference(link):
    return Ref(types.SimpleNamespace(name='q', _link=link, _settings=Settings('q', '', False)), 'x')


def test_cancel_asks_again_if_the_task_has_moved_meanwhile():
    """The script answers 3 if the task is not where it was seen. Then nothing was cancelled yet."""
    link = Scripted(look_reply(), 3, look_reply(), 1)
    reference(link).cancel()
    assert link.ran == ['look', 'cancel', 'look', 'cancel']


@pytest.mark.parametrize(('enqueued', 'counts'), [(4999, True), (5000, True), (5001, False)])
def test_the_result_of_an_older_task_of_the_same_id_does_not_count(enqueued, counts):
    note = msgpack.packb({'reason': 'completed', 'enqueued': 5000})
    outcome = Found(look_reply(completed=20, result=note)).outcome('x', enqueued)
    assert (outcome is not None) == counts


@pytest.mark.parametrize('word', ['replaced', 'canceled'])
@pytest.mark.parametrize('text', [False, True])
def test_who_waits_is_told_that_nothing_will_be_left(server, redis, word, text):
    """Nothing is kept of a task that was replaced, or that its group leaves out.

    text: the client decodes what it receives.
    """
    with server.client(decode_responses=text) as client:
        ref = godelayed.Queue('mail', client).options(keep_result=60).delay(GO, 1)
        errors = []

        def wait():
            try:
                ref.result(timeout=50)
            except Exception as e:
                errors.append(type(e))

        t = threading.Thread(target=wait)
        t.start()
        channel = godelayed.Queue('mail', client)._settings.keys.ended(ref.id)
        wait_for(lambda: redis.pubsub_numsub(channel)[0][1] == 1, 'the subscription')
        redis.publish(channel, word)
        t.join()
        assert errors == [CanceledError]


def test_errors_do_not_quote_what_redis_was_sent(redis):
    """Redis quotes the arguments of a command that it does not know, and they may be a task."""
    with pytest.raises(godelayed.DelayedError) as e:
        run(Link(redis).send('NOSUCH', 'secret'))
    assert 'secret' not in str(e.value)
    assert "unknown command 'NOSUCH'" in str(e.value)
    link = WorkerLink(Source(redis))
    with pytest.raises(RefusedError) as e:
        link.do('NOSUCH', 'secret')
    link.hang_up()
    assert 'secret' not in str(e.value)
    assert "unknown command 'NOSUCH'" in str(e.value)


@pytest.mark.parametrize(
    ('error', 'reads', 'kind'),
    [
        (redis_py.exceptions.OutOfMemoryError("command not allowed when used memory > 'maxmemory'."), False, FullError),
        (
            redis_py.exceptions.ResponseError("OOM command not allowed when used memory > 'maxmemory'. script: x"),
            False,
            FullError,
        ),
        (
            redis_py.exceptions.ResponseError('MISCONF Redis is configured to save RDB snapshots, but cannot'),
            False,
            FullError,
        ),
        (redis_py.exceptions.ResponseError('WRONGTYPE Operation'), False, DelayedError),
        (redis_py.exceptions.AuthenticationError('NOAUTH'), False, DelayedError),
        (redis_py.exceptions.BusyLoadingError('Redis is loading'), False, UnavailableError),
        (redis_py.exceptions.TimeoutError('Timeout reading'), False, UnknownError),
        (redis_py.exceptions.TimeoutError('Timeout reading'), True, UnavailableError),
        (redis_py.exceptions.ConnectionError('Connection closed'), False, UnknownError),
    ],
)
def test_errors_say_whether_anything_was_written(error, reads, kind):
    """Only UnknownError means that it is unknown."""
    assert type(explain('enqueue', error, reads=reads)) is kind


def test_a_master_that_has_become_a_replica_has_written_nothing():
    """A client of Sentinel does not say so by the kind of its error."""
    error = redis_py.exceptions.ConnectionError('The previous master is now a slave')
    error.__context__ = redis_py.exceptions.ReadOnlyError('READONLY')
    assert type(explain('enqueue', error)) is UnavailableError


@pytest.mark.parametrize('key', sorted(set(vars(Keys('x'))) - {'list', 'signals', 'events', 'watch'}))
def test_no_queue_is_named_like_a_key_of_another(key):
    name = getattr(Keys('mail'), key)
    with pytest.raises(ArgumentsError, match="key of queue 'mail|keys of another queue"):
        Keys(name + 'x' if name.endswith(':') else name)


@pytest.mark.parametrize(('completed', 'state'), [(6, State.COMPLETED), (5, State.UNKNOWN), (4, State.UNKNOWN)])
def test_a_result_whose_time_is_over_is_not_there(completed, state):
    """The sweeper that deletes it may come later."""
    found = Found([5, None, None, None, None, completed, None, msgpack.packb({'reason': 'completed'}), None])
    assert found.place()[0] is state
    assert (found.outcome('x', 0) is not None) == (state is State.COMPLETED)


@pytest.mark.parametrize(
    ('meta', 'keep'),
    [
        ({}, 0),
        ({'kr': 5, 'uk': 'k:a'}, 5),
        ({'rn': 5}, 5),
        ({'kr': 5, 'rn': 7}, 7),
        ({'kr': 7, 'rn': 5}, 7),
        ({'kr': True, 'uk': '#x'}, 0),
    ],
)
def test_for_how_long_is_kept_that_a_task_was_cancelled(meta, keep):
    message = msgpack.packb([GO, b'', {'id': 'x', 'at': 3, 'rt': 1, 'd': 2, **meta}])
    ms, note, lock = canceled(message, 9)
    assert (ms, lock) == (keep, meta.get('uk', ''))
    said = {'reason': 'canceled', 'at': 9, 'enqueued': 3, 'attempts': 1, 'deaths': 2, 'function': GO}
    if 'rn' in meta:
        said['message'] = message
    assert msgpack.unpackb(note or b'\x80') == (said if keep else {})


# What runs again.


@pytest.mark.parametrize('message', [b'garbage', msgpack.packb('a:b'), msgpack.packb(['a:b', [1], {}, 3]), b''])
def test_what_has_no_meta_runs_again_as_it_is(message):
    """That includes bytes that are not a message: whoever runs the task again may have learned to read them."""
    assert asks.anew('x', message, 5) == ('x', message, False)


def test_what_runs_again_keeps_its_bytes_if_nothing_is_left_out():
    message = b'\x93\xd9\x01f\xc0\x82\xa2id\xa1y\xa2dl\x06'  # a longer header than necessary
    assert asks.anew('x', message, 5) == ('y', message, False)
    id, new, own = asks.anew('x', message, 6)
    assert (id, new, own) == ('y', b'\x93\xd9\x01f\xc0\x81\xa2id\xa1y', False)


@pytest.mark.parametrize('kept', [{}, {'uk': 'k:a'}])
@pytest.mark.parametrize('removed', [{}, {'rt': 1}])
@pytest.mark.parametrize('id', [{}, {'id': 'y'}])
def test_the_id_of_a_unique_task_that_runs_again_stays_taken(id, kept, removed):
    """A message without an id keeps the name under which it was filed."""
    meta = {**id, 'rn': 5, **kept}
    new = asks.anew('x', msgpack.packb(['f', b'', {**meta, **removed}]), 5)
    assert new == (id.get('id', 'x'), msgpack.packb(['f', b'', meta]), bool(kept))


@pytest.mark.parametrize('key', ['dl', 'xp', 'ru'])
@pytest.mark.parametrize(('value', 'stays'), [(4, False), (5, False), (6, True), ('4', True), (4.0, True)])
def test_only_times_that_are_over_are_left_out_of_what_runs_again(key, value, stays):
    _, new, _ = asks.anew('x', msgpack.packb(['f', b'', {'id': 'x', 'rt': 1, key: value}]), 5)
    assert msgpack.unpackb(new)[2] == ({'id': 'x', key: value} if stays else {'id': 'x'})


def test_what_others_change_again_and_again_does_not_run_again():
    found = [1, None, None, None, b'9', None, None, None, msgpack.packb(['f', None, {'id': 'x'}])]
    link = Scripted(found, [0], found, [0], found, [0])
    with pytest.raises(DelayedError, match='others change it at the same time'):
        reference(link).run_again()
    assert link.ran == ['look', 'rerun'] * 3


def test_the_day_on_which_a_task_was_cancelled_is_counted_for_90_days(redis):
    ref = Queue('mail', redis).options(countdown=60).delay('example.com/app.F')
    ref.cancel()
    (stats,) = redis.scan_iter('mail_stats:*')
    assert 89 < redis.ttl(stats) / 86400 <= 90


@pytest.mark.parametrize('reply', [None, b'x', [1] * 8, [1] * 10])
def test_a_look_of_another_form_is_an_error_that_quotes_nothing(reply):
    with pytest.raises(DelayedError, match='look: expected 9 values, found'):
        Found(reply)


@pytest.mark.parametrize('note', [b'', b'\xc1', b'\x91\x01', b'\xa1x', b'\x91' * 3000])
def test_notes_that_cannot_be_read_say_nothing(note):
    assert Note(note).fields == {}
    assert (Note(note).text('error'), Note(note).number('at'), Note(note).time('at')) == ('', 0, None)


def test_what_can_be_read_of_a_note_counts():
    note = Note(msgpack.packb({1: 2, 'at': 5, 'error': 3, 'reason': 'failed', 'result': 'text'}))
    assert (note.number('at'), note.text('error'), note.text('reason')) == (5, '', 'failed')
    assert note.binary('result') is None


def test_who_waits_looks_every_five_seconds_though_nobody_tells(monkeypatch):
    """The time is somewhat random, so that callers do not all look at the same time."""
    assert {round(look_after()) for _ in range(200)} <= {4, 5, 6}
    for part, seconds in ((0.8, 4.0), (1.2, 6.0)):
        monkeypatch.setattr('random.uniform', lambda low, high, part=part: part if low <= part <= high else None)
        assert look_after() == pytest.approx(seconds)
    assert [pause(n) for n in (0, 1, 2, 5, 1000)] == [0.05, 0.1, 0.2, 1.0, 1.0]


@pytest.mark.parametrize(
    ('options', 'size'),
    [({}, MAX_BATCH), ({'countdown': 3600}, MAX_FILED), ({'group': 'g'}, MAX_FILED), ({'unique': 60}, MAX_ENLISTED)],
)
def test_sizes_of_batches(options, size):
    """As many calls as one delay_many sends together, by their options."""
    settings, its = Settings('q', '', False), Options().merged(**options)
    messages, _ = settings.messages([godelayed.call('a.B', [i]) for i in range(size + 1)], its)
    assert [len(c.ids) for c in settings.commands(messages, its)] == [size, 1]
