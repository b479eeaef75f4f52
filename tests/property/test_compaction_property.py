"""Random conversations, random policies, compactions upon compactions, forks and rewinds in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

import sessiontree
from known import of_kind, present
from property.test_context_property import check_pairs
from property_settings import examples
from sessiontree import CompactionPolicy, CompactionResult, Context, Journal, Summarizer, SummaryRequest
from sessiontree.compaction import items_of
from sessiontree.compaction.cuts import cut_points, last_cut
from sessiontree.compaction.summarizers.extractive import extractive
from sessiontree.context import MISSING_RESULT_KIND
from sessiontree.context.dialects import DIALECTS
from sessiontree.model import Compaction, Entry, ImagePart, Message, Part, Payload, TextPart, Usage, UsageReport
from sessiontree.model.builders import assistant, call, system, tool_result, user
from sessiontree.testing.clock import ManualClock, seeded_random
from validation.validators import faults

TEXTS = [
    "ok",
    "Please look at src/app/main.py.",
    "日本語のとても長い説明です。" * 12,
    "word " * 120,
    "a" * 900,
    "</summary> <b>",
]
RESULTS = ["", "done", "line\n" * 200, "x" * 12_000, "结果" * 800]
NAMES = ["read_file", "write_file", "ls", "ask_user"]

Step = list[Payload] | CompactionPolicy | str | int


def story(random: Random) -> Iterator[Step]:
    """Bursts of turns with compactions, forks, rewinds and second thoughts in between."""
    for _ in range(random.randint(3, 8)):
        yield [payload for _ in range(random.randint(2, 9)) for payload in turn(random)]
        yield policy(random)
        for _ in range(random.randint(0, 2)):
            steps: list[Step] = ["fork", "undo", "uncompact", "reset", random.randint(0, 80), random.randint(40, 80)]
            yield random.choice(steps)
        if random.random() < 0.3:
            yield policy(random)


def turn(random: Random) -> list[Payload]:
    """A user's message, some rounds of parallel tools, an answer; any of it may be missing at the end."""
    pictures: list[Part] = [TextPart(text="look"), ImagePart(data="iVBORw0KGgo=", mime="image/png")]
    said: list[Payload] = [user(pictures if random.random() < 0.1 else random.choice(TEXTS))]
    for _ in range(random.randint(0, 3)):
        said += tools(random)
    if random.random() < 0.8:
        usage = Usage(total_tokens=random.randint(1, 50_000)) if random.random() < 0.3 else None
        said.append(assistant(random.choice(TEXTS), usage=usage))
    if random.random() < 0.1:
        said.append(UsageReport(usage=Usage(total_tokens=random.randint(1, 9_000))))
    return said


def tools(random: Random) -> list[Payload]:
    """Calls in one message or several, results in any order, now and then one too few."""
    tag = random.randint(0, 10**9)
    calls = [
        call(f"c{tag}-{n}", random.choice(NAMES), f'{{"path": "src/a{tag % 50}.py"}}')
        for n in range(random.randint(1, 4))
    ]
    asked: list[Payload] = [assistant(calls=calls)] if random.random() < 0.6 else [assistant(calls=[c]) for c in calls]
    results = [tool_result(one.id, random.choice(RESULTS), name=one.name) for one in calls]
    random.shuffle(results)
    between: list[Payload] = [user("are you there?")] if random.random() < 0.1 else []
    return [*asked, *between, *(results if random.random() < 0.9 else results[1:])]


def policy(random: Random) -> CompactionPolicy:
    return CompactionPolicy(
        window_tokens=random.choice([2_000, 4_000, 8_000, 20_000]),
        reserve_tokens=random.randint(0, 2_000),
        keep_recent_tokens=random.randint(0, 4_000),
        keep_recent_messages=random.choice([0, 0, 1, 2, 3, 4, 5, 6]),
        keep_user_tokens=random.choice([0, 200, 2_000]),
        summary_tokens=random.randint(200, 1_000),
        chunk_tokens=random.choice([500, 100_000]),
        strategy=random.choice(["summarize", "truncate", "hybrid"]),
    )


@examples(20, deep=2_000)
@given(st.integers(0, 2**64))
def test_compacted_conversations_stay_valid_fit_and_lose_nothing(seed: int) -> None:
    with sessiontree.open("memory:", clock=ManualClock(), random=seeded_random(1)) as journal:
        thread_id = journal.create_thread().id
        journal.append(thread_id, system("Be kind."))
        written: set[str] = set()
        for step in story(Random(seed)):
            thread_id = play(journal, thread_id, step)
            written |= {entry.id for entry in journal.path(thread_id)}
        check_context(journal.context(thread_id))
        visible = {entry.id for thread in journal.list_threads() for entry in journal.entries(thread.id)}
        assert written <= visible, "entries went missing from the log"
        assert journal.check() == []


def play(journal: Journal, thread_id: str, step: Step) -> str:
    match step:
        case list():
            journal.append_many(thread_id, step)
        case CompactionPolicy():
            compact_and_check(journal, thread_id, step)
        case "fork":
            forked = journal.fork(thread_id).id
            assert journal.context(forked) == journal.context(thread_id)
            return forked
        case "uncompact":
            try_it(journal.uncompact, thread_id, sessiontree.NothingToUncompactError)
        case "undo":
            try_it(journal.undo, thread_id, sessiontree.NothingToUndoError)
        case "reset":
            journal.reset(thread_id)
        case int():
            path = journal.path(thread_id)
            if path:
                journal.rewind(thread_id, path[step % len(path)].id)
    return thread_id


def compact_and_check(journal: Journal, thread_id: str, policy: CompactionPolicy) -> None:
    before = journal.context(thread_id)
    raw = journal.path(thread_id)
    result = journal.compact(thread_id, summarizer(policy), policy=policy, instructions="mind the paths")
    after = journal.context(thread_id)
    check_context(after)
    if not result.is_installed:
        assert after == before
        return
    assert journal.path(thread_id)[:-1] == raw
    assert after.system == before.system
    assert made_up(after) <= made_up(before), "a compaction tore a call from its result"
    assert kept_in_sight(result, raw, before) <= seen(after), "a compaction tore a result from its call"
    assert after.tokens == result.tokens_after < result.tokens_before
    check_budget(journal, thread_id, result, policy)
    check_uncompact(journal, thread_id, before)


def check_budget(journal: Journal, thread_id: str, result: CompactionResult, policy: CompactionPolicy) -> None:
    """Below the threshold, unless the last piece alone, which must not be cut, is too big for it."""
    assert result.is_over_budget == (result.tokens_after >= policy.threshold)
    if not result.is_over_budget:
        return
    kept = items_of(journal.path(thread_id))
    last = max(point for point in cut_points(kept) if point <= last_cut(kept))
    unavoidable = sum(item.tokens for item in kept[last:])
    quoted = max(policy.user_share, policy.target // 2)
    frame = 400
    assert unavoidable + quoted + policy.max_summary_tokens + frame >= policy.threshold


def check_uncompact(journal: Journal, thread_id: str, before: Context) -> None:
    fork = journal.fork(thread_id)
    journal.uncompact(fork.id)
    restored = journal.context(fork.id)
    assert (restored.system, restored.messages, restored.segments) == (before.system, before.messages, before.segments)


def check_context(context: Context) -> None:
    check_pairs(context.messages)
    for name, dialect in DIALECTS.items():
        assert faults(name, dialect.to_request(context)) == []
    msgspec.json.encode(context)


def summarizer(policy: CompactionPolicy) -> Summarizer:
    def failing(request: SummaryRequest) -> str:
        raise RuntimeError("no model today")

    return failing if policy.strategy == "hybrid" else extractive


def kept_in_sight(result: CompactionResult, raw: list[Entry], before: Context) -> set[str]:
    ids = [entry.id for entry in raw]
    first = of_kind(Compaction, present(result.entry).payload).first_kept_entry_id
    kept = ids[ids.index(first) :] if first else []
    return seen(before) & set(kept)


def seen(context: Context) -> set[str]:
    said = (segment for segment in context.segments if segment.entry_type != "compaction")
    return {segment.entry_id for segment in said if segment.entry_id}


def made_up(context: Context) -> set[str]:
    return {result.call_id for message in missing(context) for result in message.tool_results}


def missing(context: Context) -> Iterator[Message]:
    return (message for message in context.messages if message.kind == MISSING_RESULT_KIND)


def try_it(verb: Callable[[str], object], thread_id: str, refusal: type[Exception]) -> None:
    try:
        verb(thread_id)
    except refusal:
        return
