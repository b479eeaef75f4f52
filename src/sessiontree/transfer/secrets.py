"""Find secrets in conversations, such as keys and passwords, and replace them in what is handed out.

>>> [found.rule for found in find_secrets("export GITHUB_TOKEN=ghp_" + "a1B2" * 9)]
['github-token']
>>> redact("postgresql://me:hunter22secret@db/shop")
'postgresql://me:[redacted: password-in-url]@db/shop'
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from sessiontree.journal import Journal
from sessiontree.model import Record

__all__ = ["RULES", "FoundSecret", "StoredSecret", "find_secrets", "redact", "scan"]


class _Rule(NamedTuple):
    """A pattern whose group ``secret``, or whole match, is the secret; words that must stand there for it to be tried."""

    name: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    least_entropy: float = 0.0


def _rule(name: str, hints: str, pattern: str, least_entropy: float = 0.0) -> _Rule:
    return _Rule(name, tuple(hints.split()), re.compile(pattern), least_entropy)


_END = r"(?![A-Za-z0-9_\-])"
_RULES = (
    _rule("private-key", "PRIVATE", r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]{16,}?-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----"),
    _rule("anthropic-key", "sk-ant-", r"\bsk-ant-[A-Za-z0-9_\-]{20,}"),
    _rule("openai-key", "sk-", r"\bsk-(?!ant-)(?:proj-|svcacct-|admin-)?[A-Za-z0-9_\-]{32,}" + _END),
    _rule("github-token", "gh github_pat_", r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})" + _END),
    _rule("gitlab-token", "glpat-", r"\bglpat-[A-Za-z0-9_\-]{20,}" + _END),
    _rule("aws-access-key", "AKIA ASIA", r"\b(?:AKIA|ASIA)[A-Z2-7]{16}\b"),
    _rule("aws-secret-key", "aws AWS", r"(?i)aws.{0,24}?(?:secret|key).{0,24}?['\"=: ]+(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])", 4.0),
    _rule("google-key", "AIza", r"\bAIza[A-Za-z0-9_\-]{35}" + _END),
    _rule("slack-token", "xox", r"\bxox[abeoprs]-[A-Za-z0-9\-]{10,}"),
    _rule("slack-webhook", "hooks.slack", r"https://hooks\.slack\.com/services/[A-Za-z0-9/_]{20,}"),
    _rule("stripe-key", "_live_", r"\b[rs]k_live_[A-Za-z0-9]{16,}"),
    _rule("npm-token", "npm_", r"\bnpm_[A-Za-z0-9]{36}" + _END),
    _rule("pypi-token", "pypi-", r"\bpypi-[A-Za-z0-9_\-]{50,}"),
    _rule("huggingface-token", "hf_", r"\bhf_[A-Za-z0-9]{30,}" + _END),
    _rule("sendgrid-key", "SG.", r"\bSG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{32,}"),
    _rule("digitalocean-token", "do", r"\bdo[opr]_v1_[a-f0-9]{64}"),
    _rule("azure-storage-key", "AccountKey", r"AccountKey=(?P<secret>[A-Za-z0-9+/]{80,}={0,2})"),
    _rule("json-web-token", "eyJ", r"\beyJ[A-Za-z0-9_\-]{10,}\.eyJ[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{16,}"),
    _rule("password-in-url", "://", r"\b[a-z][a-z0-9+.\-]{1,20}://[^\s:@/'\"<>]{1,64}:(?P<secret>[^\s@/'\"<>\\]{6,128})@"),
    _rule("bearer-token", "earer", r"(?i)\bbearer\s+(?P<secret>[A-Za-z0-9_\-.=+/]{24,})", 3.5),
    _rule(
        "assigned-secret",
        "ecret assw oken _key _KEY pikey piKey SECRET PASSW TOKEN API",
        r"(?i)\b[\w\-]*(?:secret|passwd|password|api[_\-]?key|access[_\-]?token|auth[_\-]?token)[\w\-]*"
        r"\\?['\"]?\s*(?:=|:|=>)\s*\\?['\"](?P<secret>[^\s'\"\\]{12,128})\\?['\"]",
        3.2,
    ),
)  # fmt: skip

RULES = tuple(rule.name for rule in _RULES)
"""The names of the rules."""

_PLACEHOLDER = re.compile(
    r"(?i)^(?:\*+|x+|\.+|<.*>|\$\{?\w+\}?|%\w+%|\{\{.*\}\}|.*(?:example|placeholder|your[_\-]|changeme|redacted|dummy).*)$"
)


class FoundSecret(NamedTuple):
    """A secret in a text: which rule found it, and where it is."""

    rule: str
    start: int
    end: int


class StoredSecret(Record, frozen=True, kw_only=True):
    """A secret in a store. ``shown`` is its beginning only."""

    thread_id: str
    entry_id: str
    rule: str
    shown: str


def find_secrets(text: str) -> list[FoundSecret]:
    """The secrets in a text, in order; of two that overlap, the one whose rule is more specific."""
    found: list[FoundSecret] = []
    for rule in _RULES:
        if any(hint in text for hint in rule.hints):
            found += _of_rule(rule, text, found)
    return sorted(found, key=lambda one: one.start)


def _of_rule(rule: _Rule, text: str, known: list[FoundSecret]) -> Iterator[FoundSecret]:
    for match in rule.pattern.finditer(text):
        name = "secret" if "secret" in rule.pattern.groupindex else 0
        start, end = match.span(name)
        secret = text[start:end]
        is_known = any(start < one.end and one.start < end for one in known)
        if is_known or _PLACEHOLDER.match(secret) or _entropy(secret) < rule.least_entropy:
            continue
        yield FoundSecret(rule.name, start, end)


def _entropy(secret: str) -> float:
    """Bits for each character, by how often each occurs: words have few, random keys many."""
    counts = Counter(secret).values()
    return -sum(count / len(secret) * math.log2(count / len(secret)) for count in counts)


def redact(text: str) -> str:
    """The text with every secret replaced by the name of its rule; JSON stays JSON."""
    pieces: list[str] = []
    at = 0
    for found in find_secrets(text):
        pieces += [text[at : found.start], f"[redacted: {found.rule}]"]
        at = found.end
    return "".join([*pieces, text[at:]]) if pieces else text


def scan(journal: Journal, thread_id: str) -> Iterator[StoredSecret]:
    """The secrets in the entries of a thread, whatever part of an entry they are in; each value once an entry."""
    for entry in journal.entries(thread_id):
        if entry.thread_id != thread_id:
            continue
        text = entry.raw
        seen: set[str] = set()
        for found in find_secrets(text):
            secret = text[found.start : found.end]
            if secret not in seen:
                seen.add(secret)
                shown = f"{secret[:4]}… ({len(secret)} characters)"
                yield StoredSecret(thread_id=thread_id, entry_id=entry.id, rule=found.rule, shown=shown)
