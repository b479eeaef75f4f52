"""A summariser without a model: it picks sentences from the conversation, and says so.

It keeps goals, decisions, open items, file paths and the last exchanges, works offline, and returns the same text for
the same conversation.

>>> from sessiontree.model.builders import assistant, user
>>> messages = (user("Port the parser to Rust.").message, assistant("We decided to use nom for src/parser.rs.").message)
>>> text = extractive(SummaryRequest(kind="history", messages=messages, max_tokens=400)).text
>>> "Port the parser to Rust." in text and "src/parser.rs" in text and text.startswith(NOTICE)
True
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from sessiontree.compaction.summarizers.base import Summary, SummaryRequest
from sessiontree.model import Message, TextPart, ToolCallPart, ToolResultPart
from sessiontree.model.tokens import estimate_text

__all__ = ["NOTICE", "NO_MEMORY", "extractive"]


NOTICE = "(Extractive summary: sentences taken from the conversation, not written by a model.)"
NO_MEMORY = "NO_MEMORY_NEEDED"

_GOALS, _FOCUS, _DECISIONS, _OPEN, _FILES, _LAST, _EARLIER = (
    "Goal", "Asked for", "Decisions", "Open items", "Files", "Last exchanges", "Earlier",
)  # fmt: skip
# The share of the tokens that each heading may use of what the headings before it left. Decisions come first: what the
# others say can be read again in the conversation or on the disk.
_SHARES = {_DECISIONS: 0.5, _GOALS: 0.25, _FOCUS: 0.25, _OPEN: 0.3, _FILES: 0.3, _LAST: 0.6, _EARLIER: 1.0}
_NEWEST_FIRST = frozenset({_GOALS, _DECISIONS, _OPEN, _FILES, _LAST})

# Patterns are compiled on first use: compiling them here would slow down every start.
# What was decided; what a user demands; and what may be a decision, which is kept as long as there is room.
_DECIDED = (
    r"(?i)\b(?:decid(?:ed?|ing)\b|decisions?:|agreed\b|settled (?:on|for)\b|(?:we|i)(?:'ve| have)? (?:chose|chosen|picked)\b"
    r"|(?:go|going|went) with\b|switch(?:ed|ing)? to\b|from now on\b"
    r"|(?:let'?s|we(?:'ll| will)) (?:use|keep|store|move|drop|rename|stay)\b)|决定|決定|決めた|решили|결정"
)
_DEMANDED = r"(?i)\b(?:must|never|always|prefer\w*|do not|don'?t|only|instead|should|(?<=^)(?:use|keep|put|leave))\b|必须|不要|必ず|должн\w+|никогда|всегда"
_PERHAPS = r"(?i)\b(?:we(?:'ll| will| should)|must not|never|always|prefer\w*|instead of)\b|使用"
_UNDONE = (
    r"(?i)\b(todo|fixme|next step|remaining|still (?:need|to|fail|miss)\w*|not yet|pending|blocked|open question|"
    r"follow.?up|left to do)\b|- \[ \]|待办|还需要"
)
_LASTING = (
    r"(?i)\b(i (?:always|never|prefer|like|want|use|work|live)|my (?:name|team|project|company|editor|machine)|remember|"
    r"prefers?|we (?:use|always|never)|by default|from now on)\b"
)
_PATH = (r"(?<![\w/.-])(?:[~.]{0,2}/)?(?:[\w.@-]+/)+[\w.@-]+\.\w+|(?<![\w/.-])[\w-]+\.(?:py|rs|go|ts|tsx|js|"
                   r"jsx|md|toml|yaml|yml|json|sql|sh|c|h|cpp|java|rb|css|html|txt|lock|cfg|ini)\b")  # fmt: skip
_SENTENCE = "(?<=[.!?])\\s+|(?<=[\u3002\uff01\uff1f])|\\n+"
_HEADING = r"(?m)^## (.+)$"
_FILLERS = frozenset(
    [
        "the",
        "and",
        "for",
        "with",
        "that",
        "this",
        "all",
        "keep",
        "focus",
        "mention",
        "please",
        "summary",
        "summarise",
        "summarize",
        "about",
    ]
)
_BY_USER = "user: "
_LINE_CHARACTERS = 280
_EXCHANGES = 4


def extractive(request: SummaryRequest) -> Summary:
    """Summarise without a model; this is the default summariser."""
    if request.kind == "memory":
        return Summary(text=_memories(request.messages), model="extractive")
    notes = _earlier_notes(request.previous_summary)
    for heading, lines in _found(request):
        notes[heading] = _merged(notes.get(heading, []), lines)
    if request.messages:
        notes[_LAST] = list(_last_exchanges(request.messages))
    text = _fitted(notes, request.max_tokens)
    if request.kind == "turn_prefix":
        # It follows the notes on the history, which have the notice already.
        text = text.removeprefix(NOTICE).lstrip() or "(the turn continues below)"
    return Summary(text=text, model="extractive")


def _found(request: SummaryRequest) -> Iterator[tuple[str, list[str]]]:
    spoken = [message for message in request.messages if message.role in {"user", "assistant"}]
    asked = [_short(message.text) for message in spoken if message.role == "user" and message.text.strip()]
    sentences = [sentence for message in spoken for sentence in _sentences(message.text)]
    yield _GOALS, asked[:1] + asked[-2:]
    yield _FOCUS, _about(request.instructions, sentences)
    yield _DECISIONS, [line for message in spoken for line in _decisions(message)]
    yield _OPEN, [sentence for sentence in sentences if re.search(_UNDONE, sentence)]
    yield _FILES, sorted({path for message in request.messages for path in re.findall(_PATH, _text(message))})


def _decisions(message: Message) -> Iterator[str]:
    """Yield the sentences of a message that decide something; what a user said is marked, for it weighs more."""
    is_user = message.role == "user"
    pattern = f"{_DECIDED}|{_DEMANDED if is_user else _PERHAPS}".replace("|(?i)", "|")
    for sentence in _sentences(message.text):
        if re.search(pattern, sentence) and not sentence.endswith("?"):
            yield f"{_BY_USER}{sentence}" if is_user else sentence


def _weight(line: str) -> int:
    """Return how firmly a line decides something."""
    return bool(re.search(_DECIDED, line)) + line.startswith(_BY_USER)


def _about(instructions: str, sentences: Sequence[str]) -> list[str]:
    """Return the sentences that share words with the instructions, those that share most first."""
    wanted = _words(instructions) - _FILLERS
    shared = {sentence: len(wanted & _words(sentence)) for sentence in dict.fromkeys(sentences)}
    return sorted((sentence for sentence in shared if shared[sentence]), key=lambda sentence: -shared[sentence])


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{3,}|\d+", text.casefold()))


def _last_exchanges(messages: Sequence[Message]) -> Iterator[str]:
    spoken = [message for message in messages if message.role in {"user", "assistant"} and message.text.strip()]
    for message in spoken[-_EXCHANGES:]:
        yield f"{message.role}: {_short(message.text)}"


def _memories(messages: Iterable[Message]) -> str:
    sentences = [sentence for message in messages if message.role == "user" for sentence in _sentences(message.text)]
    lasting = dict.fromkeys(sentence for sentence in sentences if re.search(_LASTING, sentence))
    return "\n".join(f"- {sentence}" for sentence in lasting) or NO_MEMORY


def _earlier_notes(previous: str) -> dict[str, list[str]]:
    """Return the notes of an earlier extractive summary by heading; any other summary is kept under one heading."""
    if not previous.strip():
        return {}
    if NOTICE not in previous:
        return {_EARLIER: previous.strip().splitlines()}
    marks = [(found.group(1), found.start(), found.end()) for found in re.finditer(_HEADING, previous)]
    notes: dict[str, list[str]] = {}
    for (heading, _, end), (_, start, _) in pairwise([*marks, ("", len(previous), len(previous))]):
        lines = previous[end:start].splitlines()
        if heading == _EARLIER:
            notes.setdefault(heading, []).extend(line for line in lines if line.strip())
        elif heading != _LAST:
            # The notes on a split turn follow the others, under the same headings.
            notes.setdefault(heading, []).extend(line[2:] for line in lines if line.startswith("- "))
    return notes


def _merged(earlier: Sequence[str], lines: Iterable[str]) -> list[str]:
    """Return both without duplicates; a repeated line counts as new."""
    fresh = dict.fromkeys(line for line in lines if line)
    return [line for line in earlier if line not in fresh] + list(fresh)


def _fitted(notes: dict[str, list[str]], max_tokens: int) -> str:
    available = max_tokens - estimate_text(NOTICE) - 4
    kept: dict[str, list[str]] = {}
    for heading, share in _SHARES.items():
        budget = int(available * share) - estimate_text(heading) - 4
        chosen = _chosen(heading, notes.get(heading, []), budget)
        if chosen:
            kept[heading] = chosen
            available -= estimate_text(_block(heading, chosen)) + 2
    shown = [heading for heading in (_EARLIER, _GOALS, _FOCUS, _DECISIONS, _OPEN, _FILES, _LAST) if heading in kept]
    return "\n\n".join([NOTICE, *(_block(heading, kept[heading]) for heading in shown)])


def _chosen(heading: str, lines: Sequence[str], budget: int) -> list[str]:
    """Return the lines under a heading that fit, in their order."""
    if heading == _DECISIONS:
        # Sorted so that the newest of the firmest ones come last, where the choice begins.
        kept = set(_within(sorted(lines, key=_weight), budget, from_end=True))
        return [line for line in lines if line in kept]
    if heading == _GOALS and len(lines) > 1:
        first = _within(lines[:1], budget // 2, from_end=False)
        return first + _within(lines[1:], budget - sum(estimate_text(line) + 2 for line in first), from_end=True)
    return _within(lines, budget, from_end=heading in _NEWEST_FIRST)


def _within(lines: Sequence[str], budget: int, *, from_end: bool) -> list[str]:
    """Return the lines that fit, or at least the beginning of the first one."""
    chosen: list[str] = []
    for line in reversed(lines) if from_end else lines:
        cost = estimate_text(line) + 2
        if cost > budget:
            chosen += [] if chosen else _piece(line, budget)
            break
        chosen.append(line)
        budget -= cost
    return chosen[::-1] if from_end else chosen


def _piece(line: str, budget: int) -> list[str]:
    keep = len(line)
    while keep and estimate_text(line[:keep]) + 4 > budget:
        keep //= 2
    return [f"{line[:keep]}…"] if keep > 1 else []


def _block(heading: str, lines: Sequence[str]) -> str:
    bullet = "" if heading == _EARLIER else "- "
    return f"## {heading}\n" + "\n".join(f"{bullet}{line}" for line in lines)


def _text(message: Message) -> str:
    """Return all text of a message; calls and results are included because they name paths."""
    lines = [""]
    for part in message.parts:
        match part:
            case TextPart():
                lines[0] += part.text
            case ToolCallPart():
                lines.append(part.arguments)
            case ToolResultPart():
                lines += [inner.text for inner in part.parts if isinstance(inner, TextPart)]
    return "\n".join(lines)


def _sentences(text: str) -> Iterator[str]:
    for sentence in re.split(_SENTENCE, text):
        if sentence.strip():
            yield _short(sentence)


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LINE_CHARACTERS else flat[: _LINE_CHARACTERS - 1] + "…"
