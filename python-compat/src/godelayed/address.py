"""The URL of Redis that the command takes. Its parameters are checked before anything connects."""

from __future__ import annotations

import math
import urllib.parse

import redis
import redis.exceptions

from .errors import ArgumentsError

_SCHEMES = ('redis', 'rediss', 'unix')
_NUMBERS = {'db': 0, 'protocol': 2, 'health_check_interval': 0, 'max_connections': 1}  # with the lowest values
_SECONDS = ('socket_timeout', 'socket_connect_timeout')
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
_MOST = 1_000_000_000


def client_of(url: str, name: str) -> redis.Redis:
    """Returns a client that has not connected yet.

    name says in errors where the URL comes from; errors never show the password of the URL.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        _ = parts.port
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
    try:
        client = redis.Redis.from_url(url)  # pyright: ignore[reportUnknownMemberType] - its own types are not full
        pool = client.connection_pool
        pool.connection_class(**pool.connection_kwargs)  # does not connect
    except (ValueError, TypeError, LookupError, redis.exceptions.RedisError) as e:
        raise ArgumentsError(f'{name}: a parameter has a value that cannot be: {e}') from None
    return client


def _given(parts: urllib.parse.SplitResult, name: str) -> dict[str, str]:
    """Returns the parameters of a URL after checking them."""
    names = sorted({*_NUMBERS, *_SECONDS, *_TEXTS, 'socket_keepalive', *(_TLS if parts.scheme == 'rediss' else ())})
    given: dict[str, str] = {}
    for key, value in urllib.parse.parse_qsl(parts.query, keep_blank_values=True):
        if key not in names:
            if key in _TLS:
                raise ArgumentsError(f'{name}: parameter {key!r} is one of rediss://')
            raise ArgumentsError(f'{name}: unknown parameter {key!r}: expected one of {", ".join(names)}')
        if key in given:
            raise ArgumentsError(f'{name}: parameter {key!r} is given twice')
        if not value:
            raise ArgumentsError(f'{name}: parameter {key!r} has no value')
        given[key] = value
        if key in _NUMBERS and not (value.isdecimal() and _NUMBERS[key] <= int(value) <= _MOST):
            raise ArgumentsError(
                f'{name}: parameter {key!r}: expected a whole number, at least {_NUMBERS[key]}, found {value!r}'
            )
        if key in _SWITCHES and value.lower() not in ('true', 'false'):
            raise ArgumentsError(f'{name}: parameter {key!r}: expected true or false, found {value!r}')
        if key in _SECONDS and not _positive(value):
            raise ArgumentsError(f'{name}: parameter {key!r}: expected seconds, more than 0, found {value!r}')
    return given


def _positive(text: str) -> bool:
    try:
        seconds = float(text)
    except ValueError:
        return False
    return math.isfinite(seconds) and 0 < seconds <= _MOST
