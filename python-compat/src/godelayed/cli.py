"""The command delayed-worker: imports modules of tasks and runs a worker until it is told to stop."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import logging
import os
import pkgutil
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import fields
from types import FrameType
from typing import Any

import redis
import redis.exceptions

from . import health, logs, registry
from .address import client_of
from .app import LOCAL
from .errors import ArgumentsError, DelayedError
from .reload import Watch
from .worker import StillRunningError, Worker, WorkerConfig
from .worker.status import LIBRARY

CLEAN, FAILED, USAGE, RUNNING, STUCK, FORCED = 0, 1, 2, 3, 4, 130
AGAIN = -1  # start the command again: the process that forks others was killed, or source files have changed
_PAUSE_BEFORE = 1.0  # seconds, before another worker starts

_STOP, _QUIET, _PAUSE, _RESUME = 'stop', 'quiet', 'pause', 'resume'
_ORDERS = {'SIGINT': _STOP, 'SIGTERM': _STOP, 'SIGHUP': _STOP, 'SIGTSTP': _QUIET, 'SIGUSR2': _PAUSE, 'SIGCONT': _RESUME}

_EPILOG = """signals: INT, TERM and HUP stop, a second one exits at once; TSTP claims no more tasks for good;
USR2 pauses, CONT resumes.
exit codes: 0 clean, 1 start failed or Redis was not told how tasks ended, 2 wrong arguments, 3 tasks did not stop,
130 second signal to stop."""

logger = logging.getLogger('godelayed.worker')


def _switch(text: str) -> bool:
    return bool(('0', '1').index(text))


def _size(text: str) -> int:
    """Parses 512MiB, 512M or a number of bytes."""
    found = re.fullmatch(r'([0-9]+)([KMG]?)(?:iB)?', text)
    if found is None:
        raise argparse.ArgumentTypeError('expected a number of bytes, or one with KiB, MiB or GiB, such as 512MiB')
    return int(found[1]) << {'': 0, 'K': 10, 'M': 20, 'G': 30}[found[2]]


# Options that are settings of WorkerConfig with a value, and have their names and defaults.
_SETTINGS: tuple[tuple[str, Callable[[str], Any], str, str], ...] = (
    ('--concurrency', int, 'N', 'tasks that run at once; the number of processors'),
    ('--coroutines', int, 'N', 'coroutines that run at once besides; 100'),
    ('--processes', _switch, '{0,1}', '0: run tasks in threads, faster, but timeouts end nothing; 1'),
    ('--timeout', float, 'S', 'longest run, unless the task or its function says'),
    ('--kill-after', float, 'S', 'time that a task has to end when it is told to; 3'),
    ('--max-retry', int, 'N', 'retries, unless the task or its function says; 25'),
    ('--prefetch', int, 'N', 'tasks claimed ahead; what is done in about 5 ms'),
    ('--heartbeat-life', float, 'S', 'time for which the worker counts as alive; 15'),
    ('--sweep-interval', float, 'S', 'time between two looks for dead workers; 8'),
    ('--grace', float, 'S', 'time that tasks have when the worker stops; 25'),
    ('--cancel-grace', float, 'S', 'time that they have once they were told to end; 3'),
    ('--go-queue', str, 'NAME', 'queue that Go tasks are handed on to; they are parked without'),
    ('--max-tasks', int, 'N', 'end after so many tasks'),
    ('--max-time', float, 'S', 'end after that time'),
    ('--max-memory', _size, 'SIZE', 'end when all processes take more, such as 2GiB'),
    ('--max-tasks-per-process', int, 'N', 'replace a process after so many tasks'),
    ('--max-memory-per-process', _size, 'SIZE', 'replace a process after a task with which it takes more'),
    ('--pool-start', str, 'MODULE:FUNCTION', "call it once, in the worker's process, before the first claim"),
)
# Those without a value: each turns a setting on, or off if that is its default.
_SWITCHES = (
    ('--no-sweeper', 'sweep', 'leave sweeping to other workers'),
    ('--no-periodic', 'periodic', 'leave periodic entries to other workers'),
    ('--legacy', 'legacy', "share the queues with workers of keakon's package or go-delayed"),
    ('--stop-when-empty', 'stop_when_empty', 'end when no task is pending or due'),
)


def _parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog='delayed-worker',
        description='Runs delayed calls of the functions that the modules register with @godelayed.task.',
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add, defaults = p.add_argument, {f.name: f.default for f in fields(WorkerConfig)}
    add('modules', nargs='+', metavar='MODULE', help='modules to import, such as myapp.tasks')
    text = 'a queue to serve, may be repeated; in the order given, or by weight if all have one; those of the tasks'
    add('--queue', action='append', default=[], metavar='NAME[:WEIGHT]', help=text)
    text = 'redis://[user:password@]host[:port][/db], rediss:// or unix://; that of the application, or REDIS_URL'
    add('--redis-url', help=text)
    for flag, kind, metavar, text in _SETTINGS:
        add(flag, type=kind, metavar=metavar, default=defaults[flag[2:].replace('-', '_')], help=text)
    for flag, name, text in _SWITCHES:
        add(flag, dest=name, action='store_false' if defaults[name] else 'store_true', help=text)
    add(
        '--process-start', dest='start', metavar='MODULE:FUNCTION', help='call it in each process before its first task'
    )
    add('--prefix', help='of all keys; that of the application')
    add('--wait', type=float, default=5.0, metavar='S', help='time to wait for Redis at the start; 5')
    text = 'answer /healthz and /readyz over HTTP, without authentication; with :PORT on all addresses'
    add('--listen', '--health', metavar='HOST:PORT', help=text)
    add('--reload', action='store_true', help='for development: start again when source files change')
    add('--version', action='version', version=f'%(prog)s: {LIBRARY}')
    add('--log-level', default='info', choices=('debug', 'info', 'warning', 'error'))
    add('--log-format', default='text', choices=('text', 'json'), help='how to log; text')
    return p


def _queues(given: Sequence[str]) -> Any:
    """Parses queue names with optional weights, such as mail and bulk:2."""
    names: list[str] = []
    weights: dict[str, int] = {}
    for item in given:
        name, colon, weight = item.rpartition(':')
        if not colon:
            names.append(item)
        elif not weight.isdecimal():
            raise ArgumentsError(f'--queue {item!r}: expected a whole number as weight')
        elif name in weights:
            raise ArgumentsError(f'queue {name!r} is named twice')
        else:
            weights[name] = int(weight)
    if not weights:
        return names
    for name in names:
        if name in weights:
            raise ArgumentsError(f'queue {name!r} is named twice')
        weights[name] = 1
    return weights


def _function(name: str | None) -> Any:
    """Returns the function that MODULE:FUNCTION names, None for None."""
    try:
        found = None if name is None else pkgutil.resolve_name(name)
    except (ImportError, AttributeError, ValueError) as e:
        raise ArgumentsError(f'{name!r}: expected MODULE:FUNCTION: {e}') from None
    if name is not None and not callable(found):
        raise ArgumentsError(f'{name!r}: expected a function, found a {type(found).__name__}')
    return found


def _functions() -> list[registry.Function]:
    return [f for f in map(registry.default.get, registry.default.paths()) if f is not None]


def _of_apps(name: str) -> Any:
    """Returns a setting of the applications to which the registered tasks belong, None if none gives it."""
    found = {getattr(f.app, name) for f in _functions() if f.app is not None} - {None}
    if len(found) > 1:
        option = {'url': '--redis-url'}.get(name, f'--{name}')
        raise ArgumentsError(f'the tasks belong to applications that differ in {name}: give {option}')
    return found.pop() if found else None


def _queues_of_tasks() -> list[str]:
    """Returns the queues on which calls of the registered tasks go."""
    names = sorted({f.queue for f in _functions() if f.queue is not None})
    if not names:
        raise ArgumentsError('no queues: give --queue')
    return names


def _client(url: str | None) -> Any:
    """Returns the client for a URL that was given, or that of the tasks' application, or that in REDIS_URL."""
    if url is not None:
        return client_of(url, '--redis-url')
    own = _of_apps('url')
    return client_of(own, 'the application') if own else client_of(os.environ.get('REDIS_URL') or LOCAL, 'REDIS_URL')


def _await_redis(client: Any, wait: float) -> None:
    """Waits until Redis answers. An error that waiting cannot cure, such as a wrong password, ends the wait at once."""
    end, pause = time.monotonic() + wait, 0.05
    while True:
        try:
            client.ping()
            return
        except redis.exceptions.AuthenticationError:
            raise
        except (
            redis.exceptions.ConnectionError,
            redis.exceptions.TimeoutError,
            redis.exceptions.BusyLoadingError,
        ) as e:
            left = end - time.monotonic()
            if left <= 0:
                raise DelayedError(f'Redis did not answer within {wait:g} s (see --wait): {e}') from e
            if pause == 0.05:
                logger.warning('waiting for Redis: %s', e)
            time.sleep(min(pause, left))
            pause = min(2 * pause, 2.0)


class _Program:
    """A worker and the signals that control it."""

    def __init__(self, worker: Worker, listen: tuple[str, int] | None = None, watch: Watch | None = None) -> None:
        self._worker = worker
        self._address = listen
        self._watch = watch
        self._stopped = self._forced = self._changed = False

    def run(self) -> int:
        code = self._run()
        return FORCED if self._forced else code

    def _run(self) -> int:
        self._worker.on_forked = self._forked
        try:
            self._worker.run()
        except StillRunningError:
            return RUNNING
        except DelayedError as e:
            logger.error('%s', e)
            return FAILED
        reason = self._worker.stop_reason
        if reason == 'processes' and not self._stopped:
            logger.warning('starting another worker')
            time.sleep(_PAUSE_BEFORE)  # the kernel may kill the next one for lack of memory too
        if (reason == 'processes' or self._changed) and not self._stopped:
            return AGAIN
        return FAILED if reason in ('fault', 'processes') else CLEAN

    def _forked(self) -> None:
        self._listen()
        if self._address is not None:
            try:
                server = health.listen(self._worker, self._address)
            except OSError as e:
                self._worker.kill()
                raise DelayedError(f'--listen: {e}') from e
            logger.info('answering health checks at %s:%d', *server.server_address[:2])
        if self._watch is not None:
            threading.Thread(target=self._watch.wait, args=(self._reload,), daemon=True).start()

    def _reload(self, file: str) -> None:
        logger.info('%s has changed: starting again', file)
        self._changed = True
        self._worker.stop()

    def _listen(self) -> None:
        """Starts a thread that reads the signals. A signal handler would have to wait for the main thread, which a
        signal does not always wake."""
        heard, hears = os.pipe()
        os.set_blocking(hears, False)
        signal.set_wakeup_fd(
            hears, warn_on_full_buffer=False
        )  # first, or a signal that arrives between the two calls would be missed
        for name in _ORDERS:
            number = getattr(signal, name)
            # If whoever started the program had it ignore the signal, as nohup does, it keeps ignoring it.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _nothing)
        threading.Thread(target=self._obey_all, args=(heard,), daemon=True).start()

    def _obey_all(self, heard: int) -> None:
        while True:
            for number in os.read(heard, 16):
                name = signal.Signals(number).name
                if name in _ORDERS:
                    self._obey(name)

    def _obey(self, name: str) -> None:
        do = _ORDERS[name]
        if do == _STOP and self._stopped:
            logger.warning('%s: exiting at once; tasks that still run are left to other workers', name)
            self._forced = True
            self._worker.kill()
            with contextlib.suppress(Exception):
                sys.stderr.flush()
                sys.stdout.flush()
            os._exit(FORCED)
        elif do == _STOP:
            self._stopped = True
            logger.info('%s: stopping; a second signal exits at once', name)
            self._worker.stop()
        elif self._stopped:
            pass  # service managers send CONT after TERM, so that a stopped process handles TERM
        elif do == _QUIET:
            self._worker.quiet()
        elif do == _PAUSE:
            self._worker.pause()
        else:
            self._worker.resume()


def _nothing(_: int, __: FrameType | None) -> None:
    pass


def main(args: Sequence[str] | None = None) -> int:
    """Runs the command and returns the code to exit with."""
    parser = _parser()
    given = parser.parse_args(args)
    logging.basicConfig(level=given.log_level.upper(), handlers=[logs.handler(given.log_format)])
    sys.path.insert(0, '')
    watch = Watch() if given.reload else None
    try:
        queues = _queues(given.queue)
        listen = None if given.listen is None else health.address(given.listen)
        for module in given.modules:
            _import(module, watch)
    except _Changed:
        return AGAIN
    except ArgumentsError as e:
        return _refuse(parser, e)
    except ImportError as e:
        logger.exception('cannot import what holds the tasks: %s', e)
        return FAILED
    if not len(registry.default):
        logger.error('no functions: expected that %s register some with @godelayed.task', ', '.join(given.modules))
        return FAILED
    try:
        client = _client(given.redis_url)
        settings = {f.name: getattr(given, f.name) for f in fields(WorkerConfig) if hasattr(given, f.name)}
        settings['prefix'] = given.prefix if given.prefix is not None else _of_apps('prefix') or ''
        for name in ('pool_start', 'start'):
            settings[name] = _function(settings[name])
        settings['legacy'] = given.legacy or bool(_of_apps('legacy'))
        worker = Worker(client, queues or _queues_of_tasks(), **settings)
    except (ArgumentsError, ValueError) as e:
        return _refuse(parser, e)
    try:
        _await_redis(client, given.wait)
    except (DelayedError, redis.exceptions.RedisError) as e:
        logger.error('%s', e)
        return FAILED
    finally:
        client.close()
    return _Program(worker, listen, Watch() if given.reload else None).run()


class _Changed(Exception):  # noqa: N818
    """A module that could not be imported may be another one now."""


def _import(module: str, watch: Watch | None) -> None:
    """Imports a module. With a watch it waits for a change after an error."""
    try:
        importlib.import_module(module)
    except Exception as e:
        if watch is None:
            raise
        logger.exception('cannot import %s; waiting for a change', module)
        watch.wait(lambda file: logger.info('%s has changed: starting again', file))
        raise _Changed from e


def _refuse(parser: argparse.ArgumentParser, error: Exception) -> int:
    print(f'{parser.prog}: {error}\n{parser.prog}: --help lists all options', file=sys.stderr)
    return USAGE


def command() -> None:
    """The entry point of the console script."""
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    if code == AGAIN:
        own = getattr(sys, 'orig_argv', ['', '-m', 'godelayed.cli', *sys.argv[1:]])
        os.execv(sys.executable, [sys.executable, *own[1:]])
    os._exit(code)  # threads of tasks that do not end must not keep the process alive


if __name__ == '__main__':
    command()
