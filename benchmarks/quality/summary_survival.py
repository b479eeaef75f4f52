"""What survives of a conversation when it is summarised again and again: decisions, files, goals, open items.

Run: python benchmarks/quality/summary_survival.py FILE... [--generations 10] [--window 64000] [--model NAME [--base-url URL]]

Each file is a transcript that ``import_sessions`` reads. Its messages are appended in equal parts; after each part the
conversation is compacted, and the summary is searched. Three decisions are planted in each part, one said by the user and
two by the assistant, so that it is known what has to survive. Without ``--model`` the extractive summariser writes the
summaries; with it an OpenAI-compatible model does.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import sessiontree as st
from sessiontree.compaction import Summarizer
from sessiontree.compaction.summarizers.extractive import extractive
from sessiontree.model import AssistantMessage, Message, Payload, TextPart, ToolCallMessage, UserMessage
from sessiontree.transfer.formats import import_sessions

SAID_BY_USER = [
    "Please always write {0} with {1}.",
    "Never store {0} in {1}.",
    "I prefer {1} for {0}.",
    "From now on {0} belongs to {1}.",
    "Use {1} for {0}, please.",
]
SAID_BY_ASSISTANT = [
    "We decided to keep {0} in {1}.",
    "I'll go with {1} instead of a new {0}.",
    "Agreed: {0} is handled by {1}.",
    "Decision: {0} moves to {1}.",
    "We settled on {1} for {0}.",
    "I chose {1} for {0} because it is simpler.",
    "Let's use {1} for {0}.",
    "We will keep {0} out of {1}.",
]
THINGS = ["the cache", "billing", "the parser", "error codes", "retries", "the index", "sessions", "logging", "dates"]
PLACES = ["PostgreSQL", "the worker", "TOML", "a background task", "one module", "Redis", "the gateway", "UTC"]


def main() -> None:
    asked = arguments()
    for file in asked.files:
        for name, payloads in conversations(file):
            if len(payloads) >= 4 * asked.generations:
                survival(f"{file.name} {name}", payloads, asked.generations, asked.window, summarizer(asked))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--generations", type=int, default=10)
    parser.add_argument("--window", type=int, default=64_000)
    parser.add_argument("--model", default="")
    parser.add_argument("--base-url", default=None)
    return parser.parse_args()


def summarizer(asked: argparse.Namespace) -> Summarizer:
    if not asked.model:
        return extractive
    from sessiontree.compaction.summarizers.models import OpenAISummarizer  # noqa: PLC0415  an extra

    return OpenAISummarizer(asked.model, base_url=asked.base_url)


def conversations(file: Path) -> Iterator[tuple[str, list[Payload]]]:
    with st.open("memory:") as journal:
        import_sessions(journal, file)
        for thread in journal.list_threads(limit=1_000):
            said = [entry.payload for entry in journal.path(thread.id) if entry.message is not None]
            yield thread.title or thread.id, said


def survival(name: str, payloads: Sequence[Payload], generations: int, window: int, summarize: Summarizer) -> None:
    """Print a row for each generation."""
    rng = random.Random(5)
    policy = st.CompactionPolicy(window_tokens=window, keep_recent_messages=1, keep_user_tokens=0)
    planted: list[str] = []
    print(f"{name}: {len(payloads)} messages, summaries of up to {policy.summary_share} tokens")
    print("generation  decisions kept  by age (new ... old)  open items of people  tokens")
    with st.open("memory:") as journal:
        journal.create_thread("t")
        for number in range(generations):
            part = payloads[len(payloads) * number // generations : len(payloads) * (number + 1) // generations]
            new = decisions(rng, number)
            planted += new
            journal.append_many("t", [*with_decisions(part, new, rng), st.user("Go on."), st.assistant("Yes.")])
            result = journal.compact("t", summarize, policy=policy, force=True)
            kept = [sentence in result.summary for sentence in planted]
            ages = [sum(kept[at : at + 3]) for at in range(len(kept) - 3, -1, -3)]
            print(
                f"{number + 1:10}  {sum(kept):6} of {len(kept):2}  {' '.join(map(str, ages)):>24}"
                f"  {open_items(result.summary, journal):>20}  {st.estimate_text(result.summary):6}"
            )


def decisions(rng: random.Random, generation: int) -> list[str]:
    """Return three sentences that occur nowhere else: the number makes them unique."""
    forms = [rng.choice(SAID_BY_USER), *rng.sample(SAID_BY_ASSISTANT, 2)]
    return [
        form.format(f"{rng.choice(THINGS)} {generation}{number}", rng.choice(PLACES))
        for number, form in enumerate(forms)
    ]


def with_decisions(payloads: Sequence[Payload], new: Sequence[str], rng: random.Random) -> list[Payload]:
    """Return the messages with the decisions inside texts of the user and of the assistant."""
    changed = list(payloads)
    kinds: list[type[UserMessage | AssistantMessage]] = [UserMessage, AssistantMessage, AssistantMessage]
    for sentence, kind in zip(new, kinds, strict=True):
        places = [at for at, one in enumerate(changed) if isinstance(one, kind) and one.message.text.strip()]
        if places:
            at = rng.choice(places)
            changed[at] = said(changed[at], sentence)
        else:
            changed += [st.user(sentence)] if kind is UserMessage else [st.user("So?"), st.assistant(sentence)]
    return changed


def said(payload: Payload, sentence: str) -> Payload:
    assert isinstance(payload, UserMessage | AssistantMessage | ToolCallMessage)
    message = payload.message
    return type(payload)(
        message=Message(role=message.role, parts=(TextPart(text=f"{message.text}\n{sentence}\nDone."),))
    )


def open_items(summary: str, journal: st.Journal) -> str:
    """Return how many of the open items are sentences that somebody said."""
    spoken = "\n".join(" ".join(e.message.text.split()) for e in journal.path("t") if e.message is not None)
    block = summary.partition("## Open items\n")[2].partition("\n\n")[0]
    items = [line.removeprefix("- ").rstrip("…") for line in block.splitlines()]
    return f"{sum(item in spoken for item in items)} of {len(items)}"


if __name__ == "__main__":
    main()
