"""Passwords in addresses, which are shown nowhere."""

from __future__ import annotations

import re

# Also with one slash too few, and in the form of libpq: what a user mistyped is repeated in an error.
_PASSWORD = re.compile(r"(\w:/{1,3}[^:/@\s]*:)[^\s?]*(?=@)|(\w*password\w*=)[^&\s]*", re.IGNORECASE)


def without_password(text: str) -> str:
    """Return a text with the passwords of the addresses in it as ``***``.

    >>> without_password("postgresql://ann:s3cret@db/talks?password=x&sslmode=require")
    'postgresql://ann:***@db/talks?password=***&sslmode=require'
    >>> without_password("postgresql:/ann:s3/cret@db does not exist; host=db password=x")
    'postgresql:/ann:***@db does not exist; host=db password=***'
    """
    return _PASSWORD.sub(lambda found: f"{found[1] or found[2]}***", text)
