"""Fit the constants of the token estimate to o200k, and print the estimate of each kind of text beside the real count.

Run: python benchmarks/quality/fit_estimate.py [--fit]

Without ``--fit`` it measures the constants that ``sessiontree.model.tokens`` has. ``before`` is the rule that they
replaced: a third of the ASCII characters, plus one for each other character.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from sample_texts import sample_texts
from sessiontree.model import tokens
from sessiontree.model.tokens import estimate_text, exact_counter

AIM = 1.12
"""The estimate ÷ the real count that the fit aims at: too high is a compaction too early, too low is a refused request."""
STEPS = 12_000


def main() -> None:
    count = exact_counter("o200k_base")
    texts = {name: text.strip(tokens.BLANKS) for name, text in sample_texts().items()}
    real = {name: count(text) for name, text in texts.items()}
    if "--fit" in sys.argv:
        fit([features(text) for text in texts.values()], list(real.values()))
    print(f"{'kind of text':24} {'o200k':>7} {'before':>7} {'now':>7}")
    for name, text in texts.items():
        now, before = estimate_text(text) / real[name], third(text) / real[name]
        print(f"{name:24} {real[name]:7} {before:7.2f} {now:7.2f}{'' if 0.8 <= now <= 1.5 else '  outside 0.8 to 1.5'}")


NAMES = {**tokens.PAIRS, **tokens.RUNS, **tokens.WIDE}


def features(text: str) -> list[int]:
    """Return the bits of a text, then how often each pattern is in it."""
    classes = tokens.classes_of(text)
    bits = int.from_bytes(classes, "little").bit_count()
    return [bits, *(classes.count(tokens.pattern_of(names)) for names in NAMES)]


def fit(counted: Sequence[Sequence[int]], real: Sequence[int]) -> None:
    """Change one constant at a time, and keep what is better; print the constants in thousandths."""
    rng = random.Random(1)
    weights = [value / 1000 for value in NAMES.values()]
    error, step = loss(weights, counted, real), 0.3
    for _ in range(STEPS):
        changed = list(weights)
        changed[rng.randrange(len(changed))] += rng.gauss(0, step)
        new = loss(changed, counted, real)
        if new < error:
            weights, error = changed, new
        step = max(0.004, step * 0.9995)
    print({names: round(weight * 1000) for names, weight in zip(NAMES, weights, strict=True)})


def loss(weights: Sequence[float], counted: Sequence[Sequence[int]], real: Sequence[int]) -> float:
    """Return the squared error of the ratios; outside a fifth, and below the real count, it costs much more."""
    total = 0.0
    for (bits, *row), tokens_of_text in zip(counted, real, strict=True):
        estimate = bits / 8 + sum(weight * number for weight, number in zip(weights, row, strict=True))
        off = math.log(max(estimate, 1.0) / tokens_of_text / AIM)
        total += off**2 + 8 * max(0.0, abs(off) - 0.2) ** 2 + 20 * max(0.0, -0.1 - off) ** 2
    return total


def third(text: str) -> int:
    ascii_count = len(text.encode("ascii", "ignore"))
    return -(-ascii_count // 3) + len(text) - ascii_count


if __name__ == "__main__":
    main()
