"""The log as JSON."""

import json
import logging
import sys

from working import runs

from godelayed import context, logs
from godelayed.context import Context


def test_a_record_is_one_line_of_json():
    formatter = logs.handler('json').formatter
    try:
        raise ValueError('a\nb')
    except ValueError:
        error = sys.exc_info()
    logger = logging.getLogger('shop')
    extra = {'order': 7, 'key': {(1,): 2}, 'what': object}
    record = logger.makeRecord('shop', logging.WARNING, '', 0, 'paid %s\n', ('€',), error, extra=extra)
    context.enter(Context('q', 'm:f', {'id': 'x'}, lambda *_: None, lambda: None))
    try:
        line = formatter.format(record)
    finally:
        context.enter(None)
    assert '\n' not in line
    found = json.loads(line)
    assert found.pop('time').endswith('+00:00')
    assert found.pop('traceback').endswith('ValueError: a\nb')
    assert found == {
        'level': 'warning',
        'msg': 'paid €\n',
        'logger': 'shop',
        'queue': 'q',
        'function': 'm:f',
        'id': 'x',
        'order': 7,
        'key': {},
        'what': "<class 'object'>",
    }
    plain = json.loads(formatter.format(logger.makeRecord('shop', logging.INFO, '', 0, 'x', (), None)))
    assert plain.keys() == {'time', 'level', 'msg', 'logger'}


def test_the_command_logs_as_json(q, redis, start):
    q.options(task_id='x', retry=0).delay('worker_tasks:fail', 'why')
    w = start('--log-format', 'json', '--stop-when-empty')
    w.ends()
    runs(redis, 'fail 1')
    lines = [json.loads(line) for line in w.output().splitlines()]
    (failed,) = [line for line in lines if 'attempt' in line]
    assert (failed['queue'], failed['function'], failed['id'], failed['level']) == (
        'q',
        'worker_tasks:fail',
        'x',
        'error',
    )
    assert failed['traceback'].endswith('ValueError: why')
    assert 'worker_tasks.py' in failed['traceback']
