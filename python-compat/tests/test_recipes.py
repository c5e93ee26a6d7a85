"""The programs of docs/PYTHON.md run, and the names in its tables exist."""

import contextlib
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from working import Command

import godelayed
from godelayed import cli

PAGE = (Path(__file__).parents[2] / 'docs' / 'PYTHON.md').read_text()
SOURCES = Path(godelayed.__file__).parents[1]


def sections():
    return {text.partition('\n')[0]: text for text in re.split('^## ', PAGE, flags=re.M)[1:]}


def write(section, folder):
    """Writes the programs of a section, each to the file that the text before it names last."""
    name = ''
    for text, code in re.findall(r'(.*?)^```python\n(.*?)^```$', sections()[section], flags=re.M | re.S):
        name = (re.findall(r'`([\w/]+\.py)`', text) or [name])[-1]
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(code)


def run(folder, program, **env):
    """Runs a program with the files of a folder."""
    path = os.pathsep.join((str(folder), str(SOURCES)))
    done = subprocess.run(
        [sys.executable, '-W', 'error', '-c', program],
        cwd=folder,
        env={**os.environ, 'PYTHONPATH': path, **env},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


DJANGO = """
import shop.worker
from django.db import connection, transaction
from godelayed.testing import InMemory
from shop import orders, tasks
from shop.models import Order

with connection.schema_editor() as editor:
    editor.create_model(Order)
with InMemory() as delayed:
    with transaction.atomic():
        order = orders.place('ann')
        delayed.require_empty()
    delayed.require_enqueued(tasks.confirm, order.pk)
    try:
        with transaction.atomic():
            orders.place('bob')
            raise LookupError
    except LookupError:
        pass
    delayed.require_count(1, tasks.confirm, ...)
    delayed.drain()
    assert Order.objects.get(pk=order.pk).confirmed
orders.place('cy')
"""


def test_django(tmp_path, server, redis):
    write('Django', tmp_path)
    shop = tmp_path / 'shop'
    (shop / '__init__.py').touch()
    (shop / 'settings.py').write_text(
        "SECRET_KEY, INSTALLED_APPS, USE_TZ = 'x', ['shop'], True\n"
        "DATABASES = {'default': {'ENGINE': 'django.db.backends.sqlite3', 'NAME': 'shop.db'}}\n"
        "DEFAULT_AUTO_FIELD = 'django.db.models.BigAutoField'\n"
    )
    (shop / 'models.py').write_text(
        'from django.db import models\n\n\nclass Order(models.Model):\n'
        '    customer = models.TextField()\n    confirmed = models.BooleanField(default=False)\n'
    )
    run(tmp_path, DJANGO, REDIS_URL=server.url)
    Command(server, tmp_path / 'log', '--stop-when-empty', module='shop.worker', cwd=tmp_path).ends()
    with contextlib.closing(sqlite3.connect(tmp_path / 'shop.db')) as db:
        assert db.execute('select customer, confirmed from shop_order order by id').fetchall() == [
            ('ann', 1),
            ('cy', 1),
        ]


FLASK = """
from godelayed.testing import InMemory
import service

client = service.app.test_client()
with InMemory() as delayed:
    answer = client.post('/greetings/ann')
    assert answer.status_code == 202
    where = f"/tasks/{answer.json['task']}"
    assert client.get(where).json == {'state': 'unknown', 'result': None}
    delayed.drain()
    assert client.get(where).json == {'state': 'completed', 'result': 'Welcome, ann'}
"""


def test_flask(tmp_path):
    write('Flask', tmp_path)
    run(tmp_path, FLASK)


FASTAPI = """
from fastapi.testclient import TestClient
from godelayed.testing import InMemory
import service

with InMemory() as delayed, TestClient(service.app) as client:
    answer = client.post('/greetings/ann')
    assert answer.status_code == 202
    where = f"/tasks/{answer.json()['task']}"
    assert client.get(where).json() == {'state': 'unknown'}
    delayed.drain()
    assert client.get(where).json() == {'state': 'completed'}
"""


def test_fastapi(tmp_path):
    write('FastAPI', tmp_path)
    run(tmp_path, FASTAPI)


TEN = """
import threading
import time
from types import SimpleNamespace

import godelayed
from godelayed.testing import InMemory
import shop

charged, forgotten = [], []


def charge(order):
    charged.append(order)
    if len(charged) < 3:
        raise ConnectionError


def resize(path):
    raise godelayed.TaskTimeout


shop.bank = SimpleNamespace(charge=charge)
shop.web = SimpleNamespace(fetch=lambda url: b'page')
shop.images = SimpleNamespace(resize=resize, forget=forgotten.append)


def outcome(ref):
    delayed.run()
    try:
        return ref.result(timeout=5)
    except godelayed.TaskError as error:
        return error.reason


with InMemory() as delayed:
    def kept(task, *args):
        return outcome(task.options(keep_result=10**6).delay(*args))

    assert kept(shop.charge, 1) is None
    assert charged == [1, 1, 1]
    assert kept(shop.fetch, 'x') == b'page'
    assert kept(shop.export, [5, 6]) == 2
    assert kept(shop.check, -1) == 'failed'
    assert kept(shop.check, 0) == 'dropped'
    assert kept(shop.ship, 3) == 'shipped 3'
    shop.resize.options(retry=0).delay('a.png')
    delayed.run()
    assert forgotten == ['a.png']
    shop.digest()
    delayed.require_count(3, shop.welcome, ...)
    delayed.drain()
    caller = threading.Thread(target=shop.main)
    caller.start()
    until = time.monotonic() + 30
    while len([t for t in delayed.tasks() if t.waits]) < 3:
        assert time.monotonic() < until
    delayed.drain()
    caller.join(30)
    assert not caller.is_alive()
"""


def test_ten_tasks_of_a_celery_application(tmp_path):
    write('Coming from Celery', tmp_path)
    run(tmp_path, TEN)
    (before,) = re.findall(r'^```python celery\n(.*?)^```$', PAGE, flags=re.M | re.S)
    names = re.compile(r'^def (\w+)\(', re.M)
    after = names.findall((tmp_path / 'shop.py').read_text())
    assert [*names.findall(before), 'main'] == after
    assert len(after) == 11


@pytest.mark.parametrize('section', [s for s in sections() if s.startswith('Coming')])
def test_names_of_the_tables_exist(section):
    rows = re.findall(r'^\|.*\| (.*) \|$', sections()[section], flags=re.M)
    assert len(rows) > 15
    names = {name for row in rows for name in re.findall(r'godelayed\.(\w+)', row)}
    assert [name for name in names if not hasattr(godelayed, name)] == []
    options = {name for row in rows for name in re.findall(r'`(?:[\w, =]* )?(\w+)=(?=`|\d)', row)}
    known = {*godelayed.Options.__dataclass_fields__, 'archive_on_timeout'}
    assert options - known == set()
    flags = {flag for row in rows for flag in re.findall(r'--[a-z-]+', row)} - {'--state'}
    assert [flag for flag in flags if flag not in cli._parser().format_help()] == []
