"""The table of Python values: what the producer makes of each. itest compares the rest with a Go worker."""

import json
from pathlib import Path

import pytest
from value_table import short, value

from godelayed import Options
from godelayed.calls import Call, Stamp
from godelayed.values import Plain, pack

ROWS = json.loads(
    (Path(__file__).resolve().parents[2] / 'testdata' / 'wire' / 'python_values.json').read_text(encoding='utf-8')
)['vectors']


@pytest.mark.parametrize('row', [pytest.param(r, id=r['name']) for r in ROWS])
def test_value(row):
    stamp = Stamp(Options().merged(keep_result=600), 1_700_000_000_000, legacy=False)
    c = Call('values.' + row['go'], (row['name'], value(row)), {})
    if 'producer' in row:
        with pytest.raises(TypeError) as e:
            stamp.packed(c)
        assert f'{type(e.value).__name__}: {e.value}' == row['producer']
        return
    assert stamp.packed(c)
    assert short(pack(Plain('f').value(value(row), 'x', 1)).hex()) == row['wire']


def test_the_table_says_something():
    assert len(ROWS) >= 60
    assert len({r['name'] for r in ROWS}) == len(ROWS)
    for row in ROWS:
        assert ('arrives' in row) == ('returns' in row) == ('producer' not in row and 'worker' not in row), row['name']
