"""Passwords in addresses of stores, which are shown nowhere."""

from __future__ import annotations

import re

__all__ = ["address_without_password", "without_password"]


# Also with a slash too few or none, and in the form of libpq: what a user mistyped is repeated in an error.
_IN_TEXT = re.compile(
    r"(\w:/{1,3}[^:/@\s]*:)\S*(?=@)"
    r"|(postgres\w*:/*[^:/@\s]*:)(?:\S*|[^@]*)(?=@)"
    r"|(\w*(?:password|passwd|pwd)\w*\s*=\s*)(?:'(?:[^'\\]|\\.)*'?|\"[^\"]*\"?|[^&\s'\"”]+)",
    re.IGNORECASE,
)
_IN_ADDRESS = re.compile(r"^(\w+:/+)?([^:@/]*:).*@", re.DOTALL)


def without_password(text: str) -> str:
    """Return a text with the passwords of the addresses in it as ``***``.

    >>> without_password("postgresql://ann:s3cret@db/talks?password=x&sslmode=require")
    'postgresql://ann:***@db/talks?password=***&sslmode=require'
    >>> without_password("postgresql:/ann:s3/cret@db does not exist; host=db password = 'a b' user=ann")
    'postgresql:/ann:***@db does not exist; host=db password = *** user=ann'
    """
    return _IN_TEXT.sub(lambda found: f"{found[1] or found[2] or found[3]}***", text)


def address_without_password(address: str) -> str:
    """Return an address, however it is misspelt, with its password as ``***``.

    >>> address_without_password("postgresql://ann:my p@ss word@db/talks"), address_without_password("ann:s3cret@db")
    ('postgresql://ann:***@db/talks', 'ann:***@db')
    """
    return without_password(_IN_ADDRESS.sub(lambda found: f"{found[1] or ''}{found[2]}***@", address))
