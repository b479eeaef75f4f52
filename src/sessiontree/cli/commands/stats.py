"""The command stats."""

from __future__ import annotations

from collections import Counter

import click

from sessiontree.cli.addresses import resolve_thread
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import argument, command
from sessiontree.cli.render.text import bars, nanoseconds, sparkline
from sessiontree.model import (
    AssistantMessage,
    Entry,
    MessagePayload,
    Record,
    SystemMessage,
    Thread,
    ToolCallMessage,
    Usage,
    UsageReport,
)
from sessiontree.model.prices import cost_of, sum_of
from sessiontree.model.sanitize import one_line

__all__ = ["stats"]


_MOST_TOOLS = 12
_MOST_DAYS = 60


class Totals(Record, kw_only=True, frozen=True):
    """What was counted. Tokens and cost were reported by providers; only ``estimated_tokens`` is our estimate."""

    threads: int
    entries: int
    messages: int
    estimated_tokens: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: dict[str, float]
    roles: dict[str, int]
    tools: dict[str, int]
    models: dict[str, int]
    days: dict[str, int]


@command(
    "stats",
    examples=["sessiontree stats", "sessiontree stats @", "sessiontree stats --since 30d --json"],
)
@argument("thread", "The thread; if omitted, the whole store.", required=False)
@click.option(
    "--since", default="", metavar="TIME", help="Count only entries since then: a date, or an age such as 30d."
)
def stats(cli: CliContext, *, thread: str | None, since: str) -> None:
    """Count messages, tokens, cost, tools and models, and plot the messages of each day."""
    start = nanoseconds("--since", since) if since else 0
    threads = (
        [resolve_thread(cli.journal, thread)]
        if thread
        else list(cli.journal.iter_threads(is_archived=None, limit=1000))
    )
    totals = _count(cli, threads, start, is_whole_store=thread is None)
    if cli.out.is_json:
        cli.out.json(stats=totals)
    else:
        _print(cli, totals)


def _count(cli: CliContext, threads: list[Thread], start: int, *, is_whole_store: bool) -> Totals:
    tally = _Tally()
    known = {thread.id for thread in threads}
    orphans: set[tuple[str, str]] = set()
    with cli.progress("counting") as progress:
        for number, thread in enumerate(threads, start=1):
            for entry in cli.journal.entries(thread.id):
                # Shared entries are counted with the thread they were written to, or once if it has been deleted.
                if is_whole_store and entry.thread_id != thread.id:
                    if entry.thread_id in known or (thread.tree, entry.id) in orphans:
                        continue
                    orphans.add((thread.tree, entry.id))
                if entry.created_ns >= start:
                    tally.add(entry)
            progress(number, len(threads))
    return tally.totals(threads)


class _Tally:
    """Adds up entries."""

    def __init__(self) -> None:
        self._entries = 0
        self._messages = 0
        self._usages: list[Usage] = []
        self._roles: Counter[str] = Counter()
        self._tools: Counter[str] = Counter()
        self._models: Counter[str] = Counter()
        self._days: Counter[str] = Counter()

    def add(self, entry: Entry) -> None:
        self._entries += 1
        payload = entry.payload
        if isinstance(payload, MessagePayload):
            self._roles[payload.message.role] += 1
            # A system prompt is no message: threads do not count it either.
            if not isinstance(payload, SystemMessage):
                self._messages += 1
                self._days[f"{entry.created_at.astimezone().date()}"] += 1
            self._tools.update(call.name for call in payload.message.tool_calls)
        if isinstance(payload, AssistantMessage | ToolCallMessage | UsageReport):
            if payload.model:
                self._models[payload.model] += 1
            if payload.usage is not None:
                self._usages.append(payload.usage)

    def totals(self, threads: list[Thread]) -> Totals:
        cost = sum_of(cost_of(usage, "", {}) for usage in self._usages)
        return Totals(
            threads=len(threads),
            entries=self._entries,
            messages=self._messages,
            estimated_tokens=sum(thread.tokens for thread in threads),
            input_tokens=cost.input_tokens,
            output_tokens=cost.output_tokens,
            cached_tokens=cost.cache_read_tokens,
            cost=cost.reported,
            roles=dict(self._roles.most_common()),
            tools=dict(self._tools.most_common()),
            models=dict(self._models.most_common()),
            days=dict(sorted(self._days.items())),
        )


def _print(cli: CliContext, totals: Totals) -> None:
    line = cli.out.line
    line(f"threads\t{totals.threads}\nentries\t{totals.entries}\nmessages\t{totals.messages}")
    line(f"tokens in contexts (estimated)\t{totals.estimated_tokens}")
    line(f"tokens reported: in\t{totals.input_tokens}\ntokens reported: out\t{totals.output_tokens}")
    line(f"tokens reported: from cache\t{totals.cached_tokens}")
    for currency, amount in totals.cost.items():
        line(f"cost\t{amount:.4f} {one_line(currency, 10)}")
    width = min(cli.out.width, 100)
    is_ascii = cli.out.is_plain_ascii
    for title, counts in (("roles", totals.roles), ("tools", totals.tools), ("models", totals.models)):
        if counts:
            line(cli.out.styled(f"\n{title}", "bold"))
            named = {one_line(name, 30): count for name, count in list(counts.items())[:_MOST_TOOLS]}
            for row in bars(named, width, is_ascii=is_ascii):
                line(row)
    if totals.days:
        days = dict(list(totals.days.items())[-_MOST_DAYS:])
        line(cli.out.styled(f"\nmessages a day, {min(days)} to {max(days)}", "bold"))
        line(sparkline(list(days.values()), is_ascii=is_ascii))
