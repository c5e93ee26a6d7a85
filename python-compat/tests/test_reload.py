"""A worker that starts again when its source files change."""

import os
import sys
import time
import types

import godelayed
from godelayed.reload import Watch

TASKS = """
import godelayed


@godelayed.task
def version():
    return {}
"""


def test_what_is_a_change(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    old, hidden, environment = tmp_path / 'old.py', tmp_path / '.git', tmp_path / 'venv'
    for folder in (hidden, environment):
        folder.mkdir()
    (environment / 'pyvenv.cfg').touch()
    old.touch()
    library = tmp_path.parent / f'{tmp_path.name}-library.py'
    library.touch()
    os.utime(library, (0, 0))
    watch = Watch()
    monkeypatch.setitem(sys.modules, 'a_library', types.SimpleNamespace(__file__=str(library)))
    for quiet in (hidden / 'a.py', environment / 'a.py', tmp_path / 'a.txt'):
        later(quiet)
    assert watch.changed() == ''
    later(tmp_path / 'new.py')
    assert watch.changed() == str(tmp_path / 'new.py')
    watch = Watch()
    old.unlink()
    assert watch.changed() == str(old)
    watch = Watch()
    later(library, 20)
    assert watch.changed() == str(library)


def later(file, seconds=10):
    file.touch()
    os.utime(file, (time.time() + seconds,) * 2)


def test_a_worker_starts_again_when_its_files_change(redis, start, tmp_path):
    (tmp_path / '.hidden').mkdir()
    file, ids = tmp_path / 'changing.py', iter('abc')

    def version():
        q = godelayed.Queue('q', redis).options(keep_result=60, task_id=next(ids))
        return q.delay('changing:version').result(timeout=60)

    file.write_text(TASKS.format("'first'"))
    w = start('--reload', '--concurrency', '1', module='changing', cwd=tmp_path)
    assert version() == 'first'
    (tmp_path / '.hidden' / 'other.py').write_text('')
    file.write_text('this is no Python')
    w.sees('cannot import changing; waiting for a change')
    file.write_text(TASKS.format("'the second one'"))
    assert version() == 'the second one'
    assert w.output().count('has changed: starting again') == 2
    w.stop()
