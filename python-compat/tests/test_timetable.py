"""When entries tick and what their ticks change, compared with what Go computes."""

import json
from pathlib import Path

import pytest

from godelayed import ArgumentsError, DelayedError
from godelayed.timetable import Timetable
from godelayed.worker.entries import Definition, Record
from godelayed.worker.message import Message

DOC = json.loads(
    (Path(__file__).resolve().parents[2] / 'testdata' / 'schedule' / 'periodic.json').read_text(encoding='utf-8')
)


@pytest.mark.parametrize(('spec', 'good'), DOC['specs'].items())
def test_specs(spec, good):
    if good:
        Timetable(spec)
        return
    with pytest.raises(ArgumentsError, match='spec|zone'):
        Timetable(spec)


@pytest.mark.parametrize('window', [pytest.param(w, id=f'{w["zone"] or "UTC"} {w["from"]}') for w in DOC['windows']])
def test_ticks_around_changes_of_clocks(window):
    begin = window['from']
    for key, expected in window['ticks'].items():
        dst, _, spec = key.partition(' ')
        table = Timetable(spec, window['zone'], int(dst))
        found, at = [], table.next(begin * 1000)
        while at is not None and at <= (begin + 28 * 3600) * 1000:
            found.append(at // 1000 - begin)
            at = table.next(at)
        assert found == expected, key


@pytest.mark.parametrize('far', [pytest.param(f, id=f'{f["spec"]} {f["after"]}') for f in DOC['far']])
def test_ticks_that_are_years_away(far):
    table = Timetable(far['spec'], 'America/New_York')
    found, at = [], table.next(far['after'])
    while at is not None and len(found) < 4:
        found.append(at)
        at = table.next(at)
    assert found == far['ticks']


@pytest.mark.parametrize('due', DOC['dues'])
def test_jitter(due):
    assert Timetable('@daily', jitter=due['jitter'], name=due['name']).due(due['tick']) == due['due']


@pytest.mark.parametrize('spec', ['@every 1m', '* * * * *'])
def test_what_was_missed_ends_before_the_end_of_the_entry(spec):
    minute = 60_000
    table = Timetable(spec, until=10 * minute)
    for up_to in (10 * minute, 20 * minute):
        assert table.last(0, up_to, 1) == [9 * minute]
        assert table.last(0, up_to, 2) == [8 * minute, 9 * minute]


def definition(vector):
    return Definition(
        vector['spec'],
        vector['zone'],
        vector['dst'],
        vector['missed'],
        vector['overlap'],
        vector['jitter'],
        vector['from'],
        vector['until'],
        vector['relative'],
        bytes.fromhex(vector['task']),
    )


@pytest.mark.parametrize('vector', DOC['definitions'])
def test_bytes_of_definitions(vector):
    d = definition(vector)
    assert d.encode().hex() == vector['hex']
    r = Record('e')
    r.declare('shop', d, 1_700_000_000_000)
    assert r._declared.hex() == vector['declared']
    again = Record('e', r.encode())
    assert again.encode() == r.encode()
    assert again.definition == d


@pytest.mark.parametrize('vector', DOC['plans'])
def test_plans(vector):
    raw = bytes.fromhex(vector['raw'])
    assert Record(vector['name'], raw).encode() == raw
    p = Record(vector['name'], raw).plan(vector['now'])
    assert (p.was.hex(), p.free.hex(), p.held.hex()) == (vector['raw'], vector['free'], vector['held'])
    assert (p.due_free, p.due_held, p.not_before, p.lock) == (
        vector['due_free'],
        vector['due_held'],
        vector['not_before'],
        vector['lock'],
    )
    assert [[str(t.at), t.id, t.message.hex(), t.free, t.held] for t in p.ticks] == vector['ticks']


@pytest.mark.parametrize('raw', ['90', 'c0', '92c080', '92c40080', '92c4018081a56f776e657201', '78'])
def test_entries_that_cannot_be_read(raw):
    with pytest.raises(DelayedError, match="periodic entry 'e' cannot be read; a newer version may have written it"):
        Record('e', bytes.fromhex(raw))


@pytest.mark.parametrize(
    ('change', 'why'),
    [
        ({'missed': 101}, 'catch_up is 101: expected 1 to 100'),
        ({'jitter': -1}, 'jitter is -1 ms'),
        ({'jitter': 3_600_001}, 'jitter is 3600001 ms'),
        ({'start': 1, 'until': 1}, 'expected a time after from_'),
        ({'start': 253_402_300_800_000}, 'up to the year 9999'),
        ({'spec': '@every 999ms'}, 'expected at least 1s after @every'),
        ({'spec': '@daily', 'zone': 'Moon/Base'}, 'is not known on this machine'),
        ({'spec': 'TZ=UTC @daily', 'zone': 'Europe/Berlin'}, 'names another zone than the entry'),
    ],
)
def test_definitions_that_cannot_be(change, why):
    with pytest.raises(ArgumentsError, match=f"periodic entry 'e': .*{why}"):
        Definition(**{'spec': '@daily', **change}).check('e')


@pytest.mark.parametrize('name', ['', '@e', 'a b', 'a\n', 'x' * 129, '\udcff', 7])
def test_names_that_cannot_be(name):
    with pytest.raises(ArgumentsError, match='expected a name'):
        Definition('@daily').check(name)


def test_what_holds_from_a_change_on():
    """A change of when an entry ticks holds from then on, others do not move its ticks."""
    r = Record('e')
    r.define(Definition('0 * * * *', message=b'\x91\xa1f'), 1_000)
    prev, following = r.prev, r.next
    r.define(Definition('0 * * * *', missed=3, overlap=1, message=b'\x91\xa1g'), 7_300_000)
    assert (r.prev, r.next) == (prev, following)
    r.define(Definition('30 * * * *', overlap=2, message=b'\x91\xa1g'), 7_300_000)
    assert (r.prev, r.next) == (7_300_000, 9_000_000)
    r.queued = 7_000_000
    r.define(Definition('30 * * * *', overlap=2, missed=2, message=b'\x91\xa1g'), 7_400_000)
    assert r.queued == 7_000_000
    r.define(Definition('30 * * * *', message=b'\x91\xa1g'), 7_400_000)
    assert r.queued is None


def test_the_message_of_a_tick_carries_its_id_and_lock():
    d = Definition('@daily', overlap=1, relative=1, message=bytes.fromhex('93a166c081a278707b'))
    m = Message(d.task_at('e@5', 'p:e', 5))
    assert m.meta == {'id': 'e@5', 'at': 5, 'xp': 128, 'ul': 86_400_000, 'uk': 'p:e'}
