"""The page: its head, the contents, the map of branches, and the turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from sessiontree.model import (
    BranchSummary,
    Checkpoint,
    Compaction,
    Custom,
    Entry,
    FilePart,
    ImagePart,
    Memory,
    OpaquePart,
    Part,
    Progress,
    ReasoningPart,
    Record,
    RunFailure,
    TextPart,
    Thread,
    ThreadInfo,
    TurnMarker,
    counted,
)
from sessiontree.render.branches import Branches, Run
from sessiontree.render.entries import compaction_words, role_of, summary_text, words_of
from sessiontree.render.figures import count, plural
from sessiontree.render.html.blocks import fold, image, markdown, preformatted, text
from sessiontree.render.html.calls import loose_result, step_html
from sessiontree.render.html.style import POLICY, STYLE
from sessiontree.render.ids import ShortIds
from sessiontree.render.steps import Figures, Step, figure_words, figures_of_turn, results_in, steps_of
from sessiontree.render.threads import ThreadSummary, summary_of, tool_of
from sessiontree.render.turns import is_prompt, turns_of

__all__ = ["PageContent", "render_html"]


_NAME_LENGTH = 80


class PageContent(Record, frozen=True, kw_only=True):
    """What a page shows: a thread, all entries that it sees in commit order, and its labels (name to entry id)."""

    thread: Thread
    entries: tuple[Entry, ...]
    labels: Mapping[str, str] = {}


def render_html(conversation: PageContent, progress: Progress | None = None) -> str:
    """Render a page. ``progress(done, total)`` is called with the number of entries of the active path.

    >>> import sessiontree as st
    >>> with st.open("memory:") as journal:
    ...     thread = journal.create_thread(title="<script>alert(1)</script>")
    ...     _ = journal.append(thread.id, st.user("hello *you*"))
    ...     entries = tuple(journal.entries(thread.id))
    ...     page = render_html(PageContent(thread=journal.thread(thread.id), entries=entries))
    >>> "<script" in page, "<em>you</em>" in page
    (False, True)
    """
    return "".join(_Page(conversation).pieces(progress))


class _Page:
    def __init__(self, content: PageContent) -> None:
        self._thread = content.thread
        self._folder = content.thread.workspace
        self._entries = content.entries
        self._ids = ShortIds(entry.id for entry in content.entries)
        self._branches = Branches(content.entries, content.thread.leaf)
        self._labels: dict[str, list[str]] = {}
        for name, target in content.labels.items():
            self._labels.setdefault(target, []).append(name)
        steps = steps_of(content.entries, self._folder)
        self._steps: dict[str, list[Step]] = {}
        for step in steps:
            self._steps.setdefault(step.entry.id, []).append(step)
        self._called = {step.call.id for step in steps} & set(results_in(content.entries))
        now = datetime.fromtimestamp(content.thread.updated_ns // 10**9, UTC)
        self._summary = summary_of(content.thread, content.entries, now)

    def pieces(self, progress: Progress | None) -> Iterator[str]:
        title = text(self._summary.title)
        yield '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        yield f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        yield '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">'
        yield f"<title>{title}</title><style>{STYLE}</style></head><body>"
        yield f'<header><h1 dir="auto">{title}</h1><p>{_facts(self._summary)}</p></header>'
        runs = list(self._branches.runs())
        yield from self._contents(runs)
        yield "<main>"
        path = [entry for entry in self._entries if entry.id in self._branches.active]
        for _ in counted(path, progress):
            pass
        yield from self._runs(runs)
        yield "</main></body></html>\n"

    def _contents(self, runs: Sequence[Run[Entry]]) -> Iterator[str]:
        prompts = [one for run in runs if run.is_active for one in run.entries if is_prompt(one)]
        sides = [run for run in runs if run.starts]
        if len(prompts) < 2 and not sides:
            return
        yield "<nav>"
        if prompts:
            yield "<h2>Contents</h2><ol>"
            for prompt in prompts:
                yield f'<li><a href="#e-{text(prompt.id)}">{self._name(prompt)}</a></li>'
            yield "</ol>"
        if sides:
            yield f"<h2>{plural(len(sides), 'other branch', 'other branches')}</h2><ul>"
            for run in sides:
                yield f'<li><a href="#b-{text(run.entries[0].id)}">{self._branch_name(run)}</a></li>'
            yield "</ul>"
        yield "</nav>"

    def _runs(self, runs: Sequence[Run[Entry]]) -> Iterator[str]:
        """The runs one after the other; a branch is open until something that is not in it comes."""
        ends = self._turn_ends()
        is_open = 0
        for run in runs:
            while is_open > run.depth - run.starts:
                yield "</details>"
                is_open -= 1
            if run.starts:
                yield f'<details class="branch" id="b-{text(run.entries[0].id)}"><summary>{self._branch_name(run)}</summary>'
                is_open += 1
            for entry in run.entries:
                yield self._entry(entry)
                if entry.id in ends:
                    yield _figures_html(ends[entry.id])
        yield "</details>" * is_open

    def _turn_ends(self) -> dict[str, Figures]:
        """What each turn of the active path took, by its last entry."""
        path = [entry for entry in self._entries if entry.id in self._branches.active]
        return {turn.all_entries[-1].id: figures_of_turn(turn, self._branches, self._folder) for turn in turns_of(path)}

    def _name(self, entry: Entry) -> str:
        return text(words_of(entry, self._folder, _NAME_LENGTH))

    def _branch_name(self, run: Run[Entry]) -> str:
        """The label of a branch, the first words of it, and how long it is."""
        labels = [
            f'<span class="label">{text(name)}</span> ' for one in run.entries for name in self._labels.get(one.id, ())
        ]
        first = next((entry for entry in run.entries if is_prompt(entry)), None)
        first = first or next(
            (entry for entry in run.entries if entry.message is not None and entry.message.text.strip()), None
        )
        words = self._name(first or run.entries[0])
        return f"{''.join(labels[:1])}{words} · {plural(len(run.entries), 'entry', 'entries')}"

    def _entry(self, entry: Entry) -> str:
        kind, heading, body = self._content(entry)
        if not body:
            return ""
        marks = "".join(f' <span class="label">{text(name)}</span>' for name in self._labels.get(entry.id, ()))
        when = f"{entry.created_at:%Y-%m-%d %H:%M} UTC"
        address = f'<a class="id" href="#e-{text(entry.id)}">{text(self._ids[entry.id])}</a>'
        head = f"<h2>{heading}{marks} <time>{when}</time> {address}</h2>"
        return f'<article class="{kind}" id="e-{text(entry.id)}">{head}{body}</article>\n'

    def _content(self, entry: Entry) -> tuple[str, str, str]:
        """Class, heading and body; an empty body leaves the entry out."""
        if entry.message is not None:
            role = entry.message.role
            body = "".join(map(_part, entry.message.parts))
            body += "".join(map(step_html, self._steps.get(entry.id, ())))
            loose = [result for result in entry.message.tool_results if result.call_id not in self._called]
            return role, role_of(entry), body + "".join(map(loose_result, loose))
        match entry.payload:
            case Compaction() as compaction if compaction.summary or compaction.reverts:
                said = (
                    fold("summary of what came before", markdown(summary_text(compaction.summary)))
                    if compaction.summary
                    else ""
                )
                return "note", text(compaction_words(compaction)), said or "<p></p>"
            case BranchSummary(summary=said) if said:
                return "note", "summary of a branch", markdown(said)
            case RunFailure(error=error):
                return "failure", "failed", f"<p>{text(error)}</p>"
            case TurnMarker(status="failed" | "aborted" as status, reason=reason):
                return "failure", f"turn {status}", f"<p>{text(reason) or status}</p>"
            case Memory(text=said) | ThreadInfo(text=said) if said:
                return "note", "note", markdown(said)
            case Checkpoint(files=files, root=root):
                return "note", "checkpoint", f"<p>{plural(files, 'file')} of {text(root)}</p>"
            case Custom(name=name) if name:
                return "note", "custom", f"<p>{text(name)}</p>"
            case _:
                return "", "", ""


def _facts(summary: ThreadSummary) -> str:
    thread = summary.thread
    tokens = count(summary.tokens.count, is_estimate=summary.tokens.is_estimate)
    facts = (
        thread.id,
        thread.workspace,
        tool_of(thread),
        plural(summary.entries, "entry", "entries"),
        f"{summary.branches} branches" if summary.branches is not None and summary.branches > 1 else "",
        f"{tokens} tokens in the context",
        summary.cost.words,
        f"{thread.created_at:%Y-%m-%d} to {thread.updated_at:%Y-%m-%d}",
    )
    return " · ".join(text(fact) for fact in facts if fact)


def _figures_html(figures: Figures) -> str:
    """The line that ends a turn: model, steps, time, tokens, cost, failures."""
    if not (figures.steps or figures.models):
        return ""
    facts = " · ".join(map(text, figure_words(figures)))
    failed = f' · <span class="bad">{figures.failures} failed</span>' if figures.failures else ""
    return f'<p class="facts">{facts}{failed}</p>'


def _part(part: Part) -> str:
    match part:
        case TextPart(text=said) if said.strip():
            return f'<div dir="auto">{markdown(said)}</div>'
        case ReasoningPart(text=thought) if thought.strip():
            return fold(f"thinking, {plural(len(thought.split()), 'word')}", preformatted(thought))
        case ImagePart():
            return image(part)
        case FilePart(name=name, mime=mime):
            return f"<p>[file {text(name)} {text(mime)}]</p>"
        case OpaquePart(provider=provider, block=block):
            return fold(f"a block of {text(provider)}", preformatted(str(block)))
        case _:
            return ""
