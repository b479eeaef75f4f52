"""Write the blocking form of every async source module: ``x_async.py`` becomes ``x.py``.

Run ``python tools/async_to_sync.py`` to write the files, or with ``--check`` to compare them and name the stale ones.

An ``x_async.py`` is a source unless a hand-written ``x.py`` stands next to it; to make one a source, delete its
``x.py`` and run the script. What it does to a source:

- ``async`` and ``await`` go;
- ``import asyncio`` becomes ``import time``, and ``asyncio.sleep`` becomes ``time.sleep``;
- ``AsyncName`` becomes ``Name``, ``name_async`` becomes ``name``, and the names in ``NAMES`` become their values; this
  holds for names in strings and comments too;
- ``if True:  # ASYNC`` is replaced by its ``else`` block as it is, or dropped if it has none (a source with such an
  ``else`` starts with ``# mypy: no-warn-unreachable``, which is dropped too);
- ruff sorts the imports and ``__all__``, removes unused imports, turns loops that only yield into ``yield from``, and
  formats the result.

A name that still contains "async" afterwards is an error: the code around it belongs into an ``# ASYNC`` block. So is a
class without ``Async`` in its name, because both modules would have one.
"""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from tokenize import TokenInfo

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src/sessiontree"
MYPY_COMMENT = "# mypy: no-warn-unreachable\n"
HEADER = "# Generated from {} by tools/async_to_sync.py; do not edit.\n"

NAMES = {
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "aclose": "close",
    "acommit": "commit",
    "amark": "mark",
    "aread": "read",
    "arepair": "repair",
    "areclaim": "reclaim",
    "await_change": "wait",
}
PREFIX = re.compile(r"^(_*)Async(?=[A-Z])")
SUFFIX = "_async"
SHARED_CLASS = re.compile(r"^class (?!_*Async[A-Z])(\w+)", re.MULTILINE)
WORD = re.compile(r"\w+")
SYNTAX_IN_TEXT = re.compile(r"\basync (?=(?:def|with|for)\b)|\bawait (?=\w)")

# Python 3.12 has tokens for the parts of an f-string.
REPLACED = {tokenize.NAME, tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}

Edit = tuple[int, int, str]


class ConversionError(Exception):
    """A source that cannot be converted: the message says where and why."""


def sync_text(text: str) -> str:
    """A name, string or comment with every name and every piece of async syntax in it replaced."""
    return WORD.sub(lambda word: sync_name(word[0]), SYNTAX_IN_TEXT.sub("", text))


def sync_name(name: str) -> str:
    return NAMES.get(name) or PREFIX.sub(r"\1", name).removesuffix(SUFFIX)


def convert(source: str) -> str:
    """The blocking form of a module, not yet formatted."""
    code, finished = without_async_blocks(source.removeprefix(MYPY_COMMENT))
    starts = [0, *(match.end() for match in re.finditer("\n", code))]
    tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
    for start, end, replacement in sorted(edits(tokens, starts, finished), reverse=True):
        code = code[:start] + replacement + code[end:]
    return code


def without_async_blocks(source: str) -> tuple[str, set[int]]:
    """Keep the ``else`` block of every ``if True:  # ASYNC``, one level further left; also the numbers of its lines."""
    kept: list[str] = []
    finished: set[int] = set()
    lines = source.splitlines(keepends=True)
    while lines:
        line = lines.pop(0)
        if line.strip() != "if True:  # ASYNC":
            kept.append(line)
            continue
        outer = line[: -len(line.lstrip())]
        take_block(lines, outer)
        if lines and lines[0] == f"{outer}else:\n":
            del lines[0]
            block = [inner.removeprefix("    ") for inner in take_block(lines, outer)]
            finished |= {len(kept) + number for number in range(1, len(block) + 1)}
            kept += block
    return "".join(kept), finished


def take_block(lines: list[str], outer: str) -> list[str]:
    """Remove and return the leading lines that are indented deeper than ``outer``."""
    size = 0
    while size < len(lines) and (not lines[size].strip() or lines[size].startswith(f"{outer} ")):
        size += 1
    block, lines[:] = lines[:size], lines[size:]
    return block


def edits(tokens: list[TokenInfo], starts: list[int], finished: set[int]) -> Iterator[Edit]:
    """What to replace outside of the finished lines: the start, the end and the new text."""

    def offset(position: tuple[int, int]) -> int:
        return starts[position[0] - 1] + position[1]

    for index, token in enumerate(tokens):
        start, end = offset(token.start), offset(token.end)
        if token.start[0] in finished or token.type not in REPLACED:
            continue
        if token.string in {"async", "await"}:
            yield start, offset(tokens[index + 1].start), ""
        elif token.string == "asyncio":
            is_known = tokens[index - 1].string == "import" or tokens[index + 2].string == "sleep"
            yield start, end, "time" if is_known else "asyncio"
        elif (text := sync_text(token.string)) != token.string:
            yield start, end, text


def ruff(code: str, path: Path, *arguments: str) -> str:
    command = [str(Path(sys.executable).with_name("ruff")), *arguments, "--quiet", "--stdin-filename", str(path), "-"]
    return subprocess.run(command, input=code, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def generate(source: Path) -> str:
    """The text of the blocking module."""
    target = target_of(source)
    if shared := SHARED_CLASS.search(source.read_text()):
        raise ConversionError(
            f"{source.relative_to(ROOT)}: class {shared[1]} would exist twice; move it to a module that both forms import"
        )
    code = HEADER.format(source.name) + convert(source.read_text())
    code = ruff(code, target, "check", "--select", "I,F401,UP028,RUF022", "--fix", "--unsafe-fixes", "--exit-zero")
    code = ruff(code, target, "format")
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.NAME and "async" in token.string.lower():
            raise ConversionError(
                f"{source.relative_to(ROOT)}: {token.string!r} has no blocking form (line {token.start[0]} of the result:"
                f" {token.line.strip()}); put the code into an `if True:  # ASYNC` block"
            )
    return code


def target_of(source: Path) -> Path:
    return source.with_name(source.name.replace(f"{SUFFIX}.py", ".py"))


def is_generated(path: Path) -> bool:
    return path.exists() and path.read_text().startswith(HEADER.partition("{")[0])


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the blocking form of every async source module.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is not up to date")
    is_check = parser.parse_args().check
    candidates = sorted(PACKAGE.rglob(f"*{SUFFIX}.py"))
    sources = [path for path in candidates if is_generated(target_of(path)) or not target_of(path).exists()]
    orphans = {path for path in PACKAGE.rglob("*.py") if is_generated(path)} - set(map(target_of, sources))
    stale = [f"{path.relative_to(ROOT)}: its source is gone; delete it" for path in sorted(orphans)]
    for source in sources:
        target, code = target_of(source), generate(source)
        if target.exists() and target.read_text() == code:
            continue
        if is_check:
            stale.append(f"{target.relative_to(ROOT)}: differs from what {source.name} gives; run `make generate`")
        else:
            target.write_text(code)
            sys.stdout.write(f"wrote {target.relative_to(ROOT)}\n")
    sys.stderr.writelines(f"{line}\n" for line in stale)
    return 1 if stale else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ConversionError as error:
        sys.exit(f"async_to_sync: {error}")
