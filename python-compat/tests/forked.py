"""Starts delayed-worker in a process that is forked from one which has imported it already: imports are most of what it
takes to start a worker."""

import multiprocessing
import os
import signal
import sys
from pathlib import Path

HERE = Path(__file__).parent
# For the process from which workers are forked, and for those that a worker executes.
os.environ['PYTHONPATH'] = os.pathsep.join((str(HERE), str(HERE.parent / 'src')))

_context = multiprocessing.get_context('forkserver')
_context.set_forkserver_preload(['godelayed.cli'])


def start(args, env, log, cwd):
    """Runs `python -m godelayed.cli` with arguments and environment in a folder, and appends what it prints to a file.

    Returns the multiprocessing.Process.
    """
    process = _context.Process(target=_run, args=(args, env, str(log), cwd), daemon=True)
    process.start()
    return process


def _run(args, env, log, cwd):
    # Undo what nohup and background shells do: a worker ignores signals that were ignored when it was started.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    out = os.open(log, os.O_WRONLY | os.O_APPEND)
    for standard in (1, 2):
        os.dup2(out, standard)
    os.close(out)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ['delayed-worker', *args]
    sys.orig_argv = [sys.executable, '-m', 'godelayed.cli', *args]  # what a worker executes to start again
    from godelayed import cli

    assert cli.__file__.startswith(str(HERE.parent / 'src')), f'{cli.__file__} is not what is to be tested'
    cli.command()
