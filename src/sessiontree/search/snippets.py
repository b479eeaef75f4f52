"""Snippets: the text around the first match, with the matches marked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from sessiontree.search.query import SearchQuery, Snippet, Term
from sessiontree.search.words import PIECE, fold, tokens_of

__all__ = ["snippet_of"]


_NEAR = 2_000
"""How many characters around a likely match are split into tokens: long texts are not split as a whole."""

_MAX_SCAN = 500_000
_MAX_GUESSES = 2_000

Token = tuple[str, int, int]
_UNTIDY = re.compile(r"\s\s|[^\S ]")


def snippet_of(text: str, query: SearchQuery, width: int = 160) -> Snippet:
    """Return about ``width`` characters around the first match; the beginning of the text if nothing matches."""
    start, end, marks = _first_marked(text, query)
    near = text[start:end]
    first = marks[0][0] if marks else 0
    left, right = _window(near, first, width)
    shown = [(a - left, b - left) for a, b in marks if left <= a and b <= right]
    return _tidy(near[left:right], shown, is_cut=(start + left > 0, start + right < len(text)))


def _first_marked(text: str, query: SearchQuery) -> tuple[int, int, list[tuple[int, int]]]:
    """Return the range of the text in which something matches, and the matches in it."""
    for start, end in _stretches(text, query):
        marks = sorted(_marks(list(_located(text[start:end])), query))
        if marks:
            return start, end, marks
    return 0, min(len(text), 2 * _NEAR), []


def _stretches(text: str, query: SearchQuery) -> Iterator[tuple[int, int]]:
    """Yield the ranges to search, likely ones first."""
    if len(text) <= 2 * _NEAR:
        yield 0, len(text)
        return
    guesses = sorted(at for term in query.wanted for at in _guesses(text, term))
    yield from ((max(0, at - _NEAR), min(len(text), at + _NEAR)) for at in guesses)
    if not text.isascii():
        # Folded letters may differ from the original ones, so the guesses above can miss a match.
        yield from ((at, min(len(text), at + 2 * _NEAR)) for at in range(0, min(len(text), _MAX_SCAN), _NEAR))


def _guesses(text: str, term: Term) -> Iterator[int]:
    """Yield positions of the term's first word, as a word or as a part of an identifier."""
    word = re.escape(term.alternatives[0][0])
    end = "" if term.is_prefix else "(?![a-z])"
    word_start = re.compile(rf"(?:(?<![A-Za-z0-9])(?i:{word})|{word.capitalize()}){end}")
    last = -2 * _NEAR
    for found in islice(word_start.finditer(text), _MAX_GUESSES):
        if found.start() - last >= _NEAR:
            last = found.start()
            yield last


def _located(text: str) -> Iterator[Token]:
    """Yield the tokens with their ranges in the original text."""
    for piece in PIECE.finditer(text):
        if piece[0].islower() and piece[0].isascii() and "_" not in piece[0]:
            yield piece[0], piece.start(), piece.end()
            continue
        yield from _parts_of(piece[0], piece.start())


def _parts_of(piece: str, offset: int) -> Iterator[Token]:
    """Yield the tokens of a piece with their ranges; the whole piece if folding changed its length."""
    letters = fold(piece).replace(" ", "").replace("_", "")
    is_as_long = len(letters) == len(piece.replace("_", ""))
    position = 0
    for token in tokens_of(piece):
        if not is_as_long:
            yield token, offset, offset + len(piece)
            continue
        while position < len(piece) and piece[position] == "_":
            position += 1
        yield token, offset + position, offset + position + len(token)
        position += len(token)


def _marks(tokens: list[Token], query: SearchQuery) -> Iterator[tuple[int, int]]:
    for term in query.wanted:
        for phrase in term.alternatives:
            yield from _phrase_marks(tokens, phrase, term)


def _phrase_marks(tokens: list[Token], phrase: tuple[str, ...], term: Term) -> Iterator[tuple[int, int]]:
    words = [token for token, _, _ in tokens]
    for start in range(len(tokens)):
        for width in _widths(words, start, phrase, term):
            yield tokens[start][1], tokens[start + width - 1][2]


def _widths(words: list[str], start: int, phrase: tuple[str, ...], term: Term) -> Iterator[int]:
    """Yield how many tokens from ``start`` form the phrase, as they are or joined as in an identifier."""
    width = len(phrase)
    here = words[start : start + width]
    if len(here) == width and here[:-1] == list(phrase[:-1]) and _is_end(here[-1], phrase[-1], term):
        yield width
    elif width == 1 and phrase[0].startswith(words[start]) and words[start] != phrase[0]:
        joined = ""
        for count, word in enumerate(words[start : start + 8], start=1):
            joined += word
            if joined == phrase[0]:
                yield count
            if not phrase[0].startswith(joined):
                return


def _is_end(word: str, wanted: str, term: Term) -> bool:
    return word.startswith(wanted) if term.is_prefix else word == wanted


def _window(text: str, first: int, width: int) -> tuple[int, int]:
    """Return a range of about ``width`` characters that contains the first match, cut between words if possible."""
    left = max(0, first - width // 3)
    right = min(len(text), left + width)
    left = max(0, min(left, right - width))
    if left > 0:
        blank = text.find(" ", left, min(first, left + 20))
        left = blank + 1 if blank >= 0 else left
    if right < len(text):
        blank = text.rfind(" ", max(first, right - 20), right)
        right = blank if blank > first else right
    return left, right


def _tidy(text: str, marks: list[tuple[int, int]], is_cut: tuple[bool, bool]) -> Snippet:
    """Collapse white space to one line and move the marks accordingly."""
    before = "…" if is_cut[0] else ""
    line, shift = _one_line(text, len(before)) if _UNTIDY.search(text) else (text, range(len(before), len(text) + 2))
    merged: list[tuple[int, int]] = []
    for start, end in marks:
        a, b = shift[start], shift[end]
        if merged and a < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(b, merged[-1][1]))
        elif a < b:
            merged.append((a, b))
    return Snippet(text=before + line + ("…" if is_cut[1] else ""), marks=tuple(merged))


def _one_line(text: str, start: int) -> tuple[str, Sequence[int]]:
    """Return the text with white space collapsed, and the new position of each character."""
    shift: list[int] = []
    kept: list[str] = []
    for char in text:
        shift.append(start + len(kept))
        if not char.isspace():
            kept.append(char)
        elif not kept or kept[-1] != " ":
            kept.append(" ")
    return "".join(kept), [*shift, start + len(kept)]
