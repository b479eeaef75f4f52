"""Tokens: how documents and queries are split into the words that are compared.

Case, width and Latin accents are ignored. Identifiers are split into words, and scripts without spaces between words
into characters:

>>> tokens_of("parseHTTPHeader, read_file")
['parse', 'http', 'header', 'read', 'file']
>>> tokens_of("Café 東京")
['cafe', '東', '京']
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["PIECE", "compounds_of", "fold", "index_words", "tokens_of"]


_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_COMPOUND = re.compile(
    r"[A-Za-z0-9]*[a-z0-9][A-Z][A-Za-z0-9]*|[A-Z]{2,}[a-z][A-Za-z0-9]*|[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+"
)
_MAY_BE_COMPOUND = re.compile(r"[a-z0-9][A-Z]|[A-Z][A-Z][a-z]|[A-Za-z0-9]_[A-Za-z0-9]")
_ACCENTS = re.compile("[\u0300-\u036f]")
# Han, kana, Thai, Lao, Myanmar, Khmer, and the supplementary Han planes: no spaces between words.
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff])"
)
_NO_WORD = re.compile(r"[\W_]+")
_TOKEN = re.compile(r"[a-z0-9\u0080-\U0010ffff]+")

PIECE = re.compile("[\\w\u0300-\u036f]+")
"""A part of the original text that may contain tokens."""


def fold(text: str) -> str:
    """Return the text as tokens separated by spaces or ASCII punctuation."""
    return _folded(text, has_compounds=_has_compounds(text))


def index_words(text: str) -> tuple[str, str]:
    """Return what an index stores of a text: its tokens, and its compounds."""
    if not _has_compounds(text):
        return _folded(text, has_compounds=False), ""
    return _folded(text, has_compounds=True), compounds_of(text)


def _has_compounds(text: str) -> bool:
    return ("_" in text or text != text.lower()) and _MAY_BE_COMPOUND.search(text) is not None


def _folded(text: str, *, has_compounds: bool) -> str:
    if has_compounds:
        text = _CAMEL.sub(" ", text)
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text))
    plain = unicodedata.normalize("NFC", _ACCENTS.sub("", plain)).casefold()
    return _UNSPACED.sub(r" \1 ", _NO_WORD.sub(" ", plain))


def tokens_of(text: str) -> list[str]:
    """Return the tokens of a text."""
    return _TOKEN.findall(fold(text))


def compounds_of(text: str) -> str:
    """Return the identifiers of a text as single words, so that ``readfile`` finds ``readFile`` and ``read_file``.

    >>> compounds_of("call readFile or read_file")
    'readfile readfile'
    """
    if not _has_compounds(text):
        return ""
    return " ".join(word.replace("_", "").lower() for word in _COMPOUND.findall(text))
