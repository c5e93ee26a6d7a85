"""Texts for logs and for what is kept of a task: control characters from messages and errors are escaped."""

from __future__ import annotations

import logging
import re

# C0, DEL, C1, and the line and paragraph separators of Unicode.
_CONTROL = re.compile('[\x00-\x1f\x7f-\x9f\u2028\u2029]')
_CONTROL_IN_LINES = re.compile('[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]')
_MOST_LOGGED = 1024  # characters of an id or a name in a log line
_ARGUMENTS = ', with args beginning with'  # errors of Redis quote the arguments of the command, which contain the task


def one_line(text: str) -> str:
    """Returns text with its control characters escaped as in Python, such as \
    .
    """
    return _CONTROL.sub(_escape, text)


def lines(text: str) -> str:
    """Is one_line for a text of several lines, such as a stack: it keeps line feeds and tabs."""
    return _CONTROL_IN_LINES.sub(_escape, text)


def is_text(value: object) -> bool:
    """Returns whether value is a str that can be encoded in UTF-8; a str with lone surrogates cannot."""
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


def has_control(text: str) -> bool:
    """Returns whether text contains control characters."""
    return _CONTROL.search(text) is not None


def _escape(found: re.Match[str]) -> str:
    return repr(found.group())[1:-1]


def of_redis(error: BaseException) -> str:
    """Returns the text of an error of Redis, without the arguments that Redis quotes."""
    return str(error).partition(_ARGUMENTS)[0] or type(error).__name__


def _short(value: object) -> object:
    if isinstance(value, str) and len(value) > _MOST_LOGGED:
        return f'{value[:_MOST_LOGGED]}… ({len(value)} characters)'
    return value


class OneLine(logging.Filter):
    """Escapes the control characters in records of a logger, so that texts from a task cannot look like lines of the
    log.

    It shortens ids and names that are too long, because anybody who can write to Redis can choose them.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(_short(a) for a in record.args)
        record.msg, record.args = one_line(record.getMessage()), ()
        if record.exc_info and not record.exc_text:
            record.exc_text = lines(logging.Formatter().formatException(record.exc_info))
        return True
