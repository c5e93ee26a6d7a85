"""The names that expressions of python_values.json use, and the program that holds them against a Go worker.

value_table.py URL QUEUE TABLE ANSWERS # writes a line of JSON for each row: what producer or worker refused, or what
came back value_table.py read URL QUEUE ANSWERS QUEUE/ID… # writes what Python reads in the pending tasks of a queue,
and in results
"""

import dataclasses
import datetime
import decimal
import enum
import json
import sys
import uuid
from collections import OrderedDict, defaultdict, deque, namedtuple

import msgpack


class Color(enum.Enum):
    RED = 'red'
    BYTES = b'\x01'


class Level(enum.IntEnum):
    HIGH = 3


class Bits(enum.Flag):
    A = 1
    B = 2


@dataclasses.dataclass
class Point:
    X: int
    Y: int


@dataclasses.dataclass
class Named:
    """A struct whose keys in Go differ from its fields' names."""

    user_id: int = dataclasses.field(metadata={'msgpack': 'UserID'})


Pair = namedtuple('Pair', 'X Y')


class Text(str):
    pass


class Shouting(str):
    def __str__(self):
        return self.upper()


class Precise(datetime.datetime):
    """Like the datetime of pandas."""

    nanosecond = 7


class Odd:
    """A type that cannot be sent."""

    def __repr__(self):
        return 'Odd()'


def utc(*parts):
    return datetime.datetime(*parts, tzinfo=datetime.timezone.utc)


def zone(hours, *parts):
    return datetime.datetime(*parts, tzinfo=datetime.timezone(datetime.timedelta(hours=hours)))


def nested(depth):
    """Returns a list in that many lists."""
    v = 1
    for _ in range(depth):
        v = [v]
    return v


def looped():
    """Returns a list that contains itself."""
    v = []
    v.append(v)
    return v


NAMES = {
    **{k: v for k, v in globals().items() if not k.startswith('_')},
    'Decimal': decimal.Decimal,
    'Timestamp': msgpack.Timestamp,
    'UUID': uuid.UUID,
    'OrderedDict': OrderedDict,
    'date': datetime.date,
    'defaultdict': defaultdict,
    'deque': deque,
    'timedelta': datetime.timedelta,
    'nan': float('nan'),
    'inf': float('inf'),
}


def value(row):
    """Returns the Python value of a row."""
    return eval(row['python'], NAMES)  # the table is part of this repository


def shown(v):
    """Returns how the column returns shows a value."""
    if isinstance(v, datetime.datetime):
        return v.isoformat()
    if isinstance(v, list):
        return '[' + ', '.join(map(shown, v)) + ']'
    if isinstance(v, dict):
        return '{' + ', '.join(f'{shown(k)}: {shown(e)}' for k, e in v.items()) + '}'
    return repr(v)


def short(text):
    """Shortens a long text."""
    return text if len(text) <= 200 else f'{text[:200]}… {len(text)}'


def main(url, queue, table, answers):
    import redis

    import godelayed

    with redis.Redis.from_url(url) as client, open(answers, 'w', encoding='utf-8') as out:
        q = godelayed.Queue(queue, client).options(keep_result=600)
        with open(table, encoding='utf-8') as f:
            rows = json.load(f)['vectors']
        sent = []
        for row in rows:
            try:
                sent.append(q.delay('values.' + row['go'], row['name'], value(row)))
            except godelayed.DelayedError as e:
                sent.append(e)
        for row, ref in zip(rows, sent):
            said = {'name': row['name']}
            try:
                if isinstance(ref, Exception):
                    raise ref
                said['returns'] = short(shown(ref.result(timeout=100)))
            except godelayed.TaskError as e:
                said['worker'] = f'{e.reason}: {e.text}'
            except godelayed.ArgumentsError as e:
                said['producer'] = f'{type(e).__name__}: {e}'
            print(json.dumps(said), file=out)


def read(url, queue, answers, *places):
    """Writes a line of JSON for each pending task and for each result: what Python reads."""
    import redis

    import godelayed
    from godelayed.values import unpack

    with redis.Redis.from_url(url) as client, open(answers, 'w', encoding='utf-8') as out:
        for message in client.lrange(queue, 0, -1):
            print(json.dumps(short(shown(unpack(message)[1][0]))), file=out)
        for place in places:
            name, id = place.rsplit('/', 1)
            print(json.dumps(short(shown(godelayed.Queue(name, client).ref(id).result(timeout=100)))), file=out)


if __name__ == '__main__':
    (read if sys.argv[1] == 'read' else main)(*sys.argv[2:] if sys.argv[1] == 'read' else sys.argv[1:])
