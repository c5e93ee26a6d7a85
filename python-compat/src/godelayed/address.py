"""The URLs of Redis that programs and the command take. They are checked before anything connects."""

from __future__ import annotations

import math
import re
import urllib.parse
from typing import Any, cast

import redis
import redis.asyncio
import redis.asyncio.sentinel
import redis.connection
import redis.exceptions
import redis.sentinel

from .cluster import Cluster
from .errors import ArgumentsError

_SCHEMES = ('redis', 'rediss', 'unix')
_NUMBERS = {'db': 0, 'protocol': 2, 'health_check_interval': 0, 'max_connections': 1}  # with the lowest values
_SECONDS = ('socket_timeout', 'socket_connect_timeout')
_LIMITS = dict.fromkeys(_SECONDS, 5.0)  # unless the URL says else: some versions of redis-py have no limit
_TEXTS = ('username', 'password', 'client_name')
_SWITCHES = ('socket_keepalive', 'ssl_check_hostname')
_TLS = (
    'ssl_cert_reqs',
    'ssl_ca_certs',
    'ssl_ca_path',
    'ssl_certfile',
    'ssl_keyfile',
    'ssl_password',
    'ssl_check_hostname',
)
# Parameters of the command delayed and of Go programs, by which a URL may serve programs of both languages.
_OF_GO = {
    'ca': 'ssl_ca_certs',
    'cert': 'ssl_certfile',
    'key': 'ssl_keyfile',
    'dial_timeout': 'socket_connect_timeout',
    'pool_size': 'max_connections',
}
_DURATION = re.compile(r'(\d+(?:\.\d+)?)(ms|s|m)')
_SENTINEL = ('master', 'sentinel_user', 'sentinel_password')
_MOST = 1_000_000_000


def client_of(url: str, name: str, aio: bool = False) -> Any:
    """Returns a client of redis-py, or of redis.asyncio, that has not connected yet; a Cluster if the URL names several
    hosts, and a client of the master that Sentinels watch if it has the parameter master.

    name says in errors where the URL comes from; errors never show the password of the URL.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        login, at, hosts = parts.netloc.rpartition('@')
        several = [parts._replace(netloc=login + at + host) for host in hosts.split(',')]
        addresses = [(p.hostname or '', p.port) for p in several]
    except ValueError:
        raise ArgumentsError(
            f'{name}: expected a URL, found what cannot be read as one; write special characters in the password as '
            '%40, %2F and so on'
        ) from None
    if parts.scheme not in _SCHEMES:
        raise ArgumentsError(
            f'{name}: expected redis://, rediss:// or unix://, found {parts.scheme + "://" if parts.scheme else "none"}'
        )
    if parts.fragment:
        raise ArgumentsError(f'{name}: expected no #; write it as %23')
    given = _given(parts, name)
    if parts.scheme != 'unix' and parts.path not in ('', '/'):
        if not parts.path[1:].isdecimal():
            raise ArgumentsError(f'{name}: expected a number of a database behind the host, found another text')
        if 'db' in given:
            raise ArgumentsError(f'{name}: the database is given twice, behind the host and as parameter db')
    sentinel, cluster = 'master' in given, len(several) > 1
    if (sentinel or cluster) and not all(re.fullmatch(r'[^\s,]+', host) for host, _ in addresses):
        raise ArgumentsError(f'{name}: expected hosts as in a:6379,b:6379, found one without a name')
    if not sentinel and given.keys() & set(_SENTINEL):
        raise ArgumentsError(f'{name}: expected the parameter master as well, the name that Sentinels have for it')
    if cluster and not sentinel and (given.get('db') or parts.path[1:]).strip('0'):
        raise ArgumentsError(f'{name}: a cluster has database 0 only, found another')
    own = urllib.parse.urlencode({k: v for k, v in given.items() if k not in _SENTINEL})

    kind: Any = redis.asyncio.Redis if aio else redis.Redis

    def client(host: str, port: int) -> Any:
        netloc = f'{login}{at}[{host}]:{port}' if ':' in host else f'{login}{at}{host}:{port}'
        return kind.from_url(urllib.parse.urlunsplit(parts._replace(netloc=netloc, query=own)), **_LIMITS)

    try:
        if sentinel:
            made = _master(parts._replace(netloc=login + at + 'host', query=own).geturl(), addresses, given, aio)
        elif cluster:
            made = Cluster([(host, port or 6379) for host, port in addresses], client)
            made.node(*made.hosts[0])  # checks the values of the parameters
        elif parts.scheme == 'unix':
            made = kind.from_url(f'unix://{parts.netloc}{parts.path}?{own}', socket_timeout=5.0)
        else:
            made = client(addresses[0][0] or 'localhost', addresses[0][1] or 6379)
        pool: Any = made.connection_pool
        pool.connection_class(**pool.connection_kwargs)  # does not connect
    except (ValueError, TypeError, LookupError, redis.exceptions.RedisError) as e:
        raise ArgumentsError(f'{name}: a parameter has a value that cannot be: {e}') from None
    return made


def _master(url: str, sentinels: list[tuple[str, int | None]], given: dict[str, str], aio: bool) -> Any:
    """Returns a client of a master. url has the settings for it; those for TLS hold for the Sentinels too."""
    settings: Any = cast('Any', redis.connection).parse_url(url)
    settings.pop('host')
    settings = {**_LIMITS, **settings}
    tls = {k: v for k, v in settings.items() if k.startswith(('ssl_', 'socket_'))}
    if settings.pop('connection_class', None) is not None:  # that of TLS
        settings['ssl'] = tls['ssl'] = True
    for key, name in (('username', 'sentinel_user'), ('password', 'sentinel_password')):
        if name in given:
            tls[key] = given[name]
    kind: Any = redis.asyncio.sentinel.Sentinel if aio else redis.sentinel.Sentinel
    watching = kind([(host, port or 26379) for host, port in sentinels], sentinel_kwargs=tls, **settings)
    return watching.master_for(given['master'])


def _given(parts: urllib.parse.SplitResult, name: str) -> dict[str, str]:
    """Returns the parameters of a URL after checking them."""
    names = {*_NUMBERS, *_SECONDS, *_TEXTS, 'socket_keepalive', *(_TLS if parts.scheme == 'rediss' else ())}
    names |= set(_SENTINEL if parts.scheme != 'unix' else ())
    given: dict[str, str] = {}
    for own, value in urllib.parse.parse_qsl(parts.query, keep_blank_values=True):
        key = _OF_GO.get(own, own)
        if key not in names:
            if key in _TLS:
                raise ArgumentsError(f'{name}: parameter {own!r} is one of rediss://')
            raise ArgumentsError(f'{name}: unknown parameter {own!r}: expected one of {", ".join(sorted(names))}')
        if key in given:
            raise ArgumentsError(f'{name}: parameter {own!r} is given twice')
        if not value:
            raise ArgumentsError(f'{name}: parameter {own!r} has no value')
        if own == 'dial_timeout':
            found = _DURATION.fullmatch(value)
            if found is None:
                raise ArgumentsError(f'{name}: parameter {own!r}: expected a time such as 2s, found {value!r}')
            value = str(float(found[1]) * {'ms': 0.001, 's': 1, 'm': 60}[found[2]])
        given[key] = value
        if key in _NUMBERS and not (value.isdecimal() and _NUMBERS[key] <= int(value) <= _MOST):
            raise ArgumentsError(
                f'{name}: parameter {own!r}: expected a whole number, at least {_NUMBERS[key]}, found {value!r}'
            )
        if key in _SWITCHES and value.lower() not in ('true', 'false'):
            raise ArgumentsError(f'{name}: parameter {own!r}: expected true or false, found {value!r}')
        if key in _SECONDS and not _positive(value):
            raise ArgumentsError(f'{name}: parameter {own!r}: expected seconds, more than 0, found {value!r}')
    return given


def _positive(text: str) -> bool:
    try:
        seconds = float(text)
    except ValueError:
        return False
    return math.isfinite(seconds) and 0 < seconds <= _MOST
