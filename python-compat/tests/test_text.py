"""Foreign texts in logs and in what is kept of a task: none can look like lines of the log, or move a terminal's
cursor."""

import logging
import unicodedata

import msgpack
import pytest

from godelayed.text import OneLine, has_control, is_text, lines, of_redis, one_line
from godelayed.worker import info

# The control characters of Unicode, and its line and paragraph separators.
CONTROL = [c for c in map(chr, range(0x3000)) if unicodedata.category(c) in ('Cc', 'Zl', 'Zp')]


_TURNS = ('LRE', 'LRO', 'RLE', 'RLO', 'PDF', 'LRI', 'RLI', 'FSI', 'PDI')
# Marks that turn the direction of writing.
DIRECTION = [c for c in map(chr, range(0x3000)) if unicodedata.bidirectional(c) in _TURNS or c in '\u061c\u200e\u200f']


def test_each_control_character_is_escaped():
    assert (len(CONTROL), len(DIRECTION)) == (67, 12)
    for c in CONTROL:
        assert one_line(f'a{c}b') == f'a{repr(c)[1:-1]}b'
        assert lines(f'a{c}b') == (f'a{c}b' if c in '\n\t' else f'a{repr(c)[1:-1]}b')
        assert has_control(f'a{c}b')
    for c in DIRECTION:
        assert one_line(f'a{c}b') == lines(f'a{c}b') == f'a{repr(c)[1:-1]}b'
    assert one_line('a\udcffb') == lines('a\udcffb') == 'a\\udcffb'  # a byte that is no UTF-8
    kept = ''.join(c for c in map(chr, range(0xD800)) if c not in CONTROL + DIRECTION)
    assert (one_line(kept), lines(kept), has_control(kept)) == (kept, kept, False)


@pytest.fixture
def logged():
    """Returns how a record looks in the worker's log."""

    def logged(msg, *args, error=None, extra=None):
        if error is not None:
            try:
                raise error
            except type(error) as e:
                error = (type(e), e, e.__traceback__)
        logger = logging.getLogger('godelayed.worker')
        record = logger.makeRecord(logger.name, logging.ERROR, '', 0, msg, args, error, extra=extra)
        assert OneLine().filter(record)
        return logging.Formatter('%(message)s').format(record)

    return logged


def test_a_record_is_one_line(logged):
    assert logged('queue %s: %s', 'q\n2026 INFO: all is well', '\x1b[2J\x9b2J') == (
        r'queue q\n2026 INFO: all is well: \x1b[2J\x9b2J'
    )


def test_a_stack_in_the_log_has_no_control_character_but_its_line_ends(logged):
    text = logged('failed', error=ValueError('a\x1b[2J\u2028b\r\x85'))
    assert text.splitlines()[-1] == r'  ValueError: a\x1b[2J\u2028b\r\x85'
    assert not has_control(text.replace('\n', ''))


def test_a_traceback_that_comes_as_text_is_escaped_and_cut(logged):
    text = logged('failed', extra={'traceback': 'Traceback:\n  line\x1b[2J\r\nValueError: a\u2028\n'})
    assert text == 'failed\n  Traceback:\n    line\\x1b[2J\\r\n  ValueError: a\\u2028'
    assert len(logged('failed', extra={'traceback': 'x' * 2**20})) < 17_000


@pytest.mark.parametrize(('n', 'cut'), [(1024, False), (1025, True)])
def test_how_much_of_a_name_is_logged(logged, n, cut):
    assert logged('%s', 'x' * n) == ('x' * 1024 + '… (1025 characters)' if cut else 'x' * n)


def test_lines_and_tracebacks_in_the_log_have_a_bound(logged):
    """Exceptions have texts of any length."""
    long = ValueError('x' * 2**20)
    assert max(map(len, logged('%s', long, error=long).splitlines())) < 17_000


def test_what_is_kept_of_a_task_has_no_control_character():
    """That holds for every field, whoever wrote it. A stack keeps its lines."""
    fields = dict.fromkeys(('reason', 'function', 'error', 'worker', 'note'), ''.join(CONTROL))
    kept = msgpack.unpackb(info.encode(**fields, stack='a\n\tb\x1b\u2029'))
    assert kept.pop('stack') == 'a\n\tb\\x1b\\u2029'
    assert kept.keys() == fields.keys()
    assert not any(has_control(v) for v in kept.values())


@pytest.mark.parametrize('name', ['reason', 'function', 'error', 'stack', 'worker', 'note'])
def test_texts_that_are_kept_of_a_task_have_a_bound(name):
    """Escaping makes a text longer, so it comes before the cut."""
    assert msgpack.unpackb(info.encode(**{name: '\x1b' * 4096})) == {name: r'\x1b' * 1024}


def test_an_error_of_redis_quotes_no_arguments():
    """Redis quotes the command that it was sent, and that contains a task."""
    assert of_redis(ValueError('ERR unknown command `X`, with args beginning with: `secret`')) == (
        'ERR unknown command `X`'
    )
    assert of_redis(ValueError()) == 'ValueError'


def test_lone_surrogates_are_no_text():
    assert [is_text(v) for v in ('x', '', '\ud800', b'x', None)] == [True, True, False, False, False]
