"""Ways to break a source."""

from __future__ import annotations

import random
from collections.abc import Callable

Mutation = Callable[[bytes, random.Random], bytes]


def flip_bits(body: bytes, source: random.Random) -> bytes:
    found = bytearray(body)
    for _ in range(source.randint(1, 12)):
        found[source.randrange(len(found))] ^= 1 << source.randrange(8)
    return bytes(found)


def cut_off(body: bytes, source: random.Random) -> bytes:
    return body[: source.randrange(len(body))]


def double_lines(body: bytes, source: random.Random) -> bytes:
    lines = body.split(b"\n")
    for _ in range(source.randint(1, 4)):
        lines.insert(source.randrange(len(lines) + 1), source.choice(lines))
    return b"\n".join(lines)


def shuffle_lines(body: bytes, source: random.Random) -> bytes:
    lines = body.split(b"\n")
    source.shuffle(lines)
    return b"\n".join(lines)


def nul_run(body: bytes, source: random.Random) -> bytes:
    at = source.randrange(len(body))
    return body[:at] + b"\x00" * source.randint(1, 8192) + body[at + source.randint(0, 4096) :]


def nest_deeply(body: bytes, source: random.Random) -> bytes:
    depth = source.choice([60, 900, 5_000, 60_000])
    deep = b"[" * depth + b"]" * depth if source.random() < 0.5 else b'{"a":' * depth + b"1" + b"}" * depth
    lines = body.split(b"\n")
    at = source.randrange(len(lines))
    if source.random() < 0.5:
        lines.insert(at, b'{"type":"message","id":"deep","message":' + deep + b"}")
    else:
        lines[at] = lines[at].replace(b":", b":" + deep + b',"x":', 1)
    return b"\n".join(lines)


def tie_a_ring(body: bytes, source: random.Random) -> bytes:
    """Parents and ids exchanged, so that some chains end in themselves."""
    for key in (b'"parent_id":"', b'"parentId":"', b'"leaf_id":"', b'"first_kept_entry_id":"'):
        pieces = body.split(key)
        if len(pieces) > 2:
            first, second = source.sample(range(1, len(pieces)), 2)
            one, two = pieces[first].split(b'"', 1), pieces[second].split(b'"', 1)
            one[0], two[0] = two[0], one[0]
            pieces[first], pieces[second] = b'"'.join(one), b'"'.join(two)
            body = key.join(pieces)
    return body


def odd_values(body: bytes, source: random.Random) -> bytes:
    wrong = [b"null", b"[]", b"{}", b"-1", b"1e999", b"99999999999999999999", b'"\\ud800"', b"true", b'"\\u0000"']
    pieces = body.split(b":")
    at = source.randrange(1, len(pieces)) if len(pieces) > 1 else 0
    pieces[at] = source.choice(wrong) + (b"," if source.random() < 0.7 else b"") + pieces[at]
    return b":".join(pieces)


MUTATIONS: list[Mutation] = [
    flip_bits, cut_off, double_lines, shuffle_lines, nul_run, nest_deeply, tie_a_ring, odd_values,
]  # fmt: skip
