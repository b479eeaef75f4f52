"""The transcript: a window of a path as articles, prompts as cards, calls with their results, events as lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sessiontree.model import (
    AssistantMessage,
    BranchSummary,
    Checkpoint,
    Compaction,
    Custom,
    Entry,
    FilePart,
    ImagePart,
    Memory,
    Message,
    ModelChange,
    OpaquePart,
    ReasoningPart,
    Record,
    RunFailure,
    TextPart,
    Thread,
    ThreadInfo,
    ToolResultPart,
    TurnMarker,
    UnknownPayload,
)
from sessiontree.model.prices import PRICES, cost_of, reported_usage
from sessiontree.model.sanitize import one_line
from sessiontree.render.entries import role_of, summary_text
from sessiontree.render.figures import count, plural
from sessiontree.render.html.blocks import image, markdown, preformatted
from sessiontree.render.steps import Step, results_in, steps_of
from sessiontree.render.times import clock, day
from sessiontree.render.turns import amount_of, is_bookkeeping, is_prompt
from sessiontree.web.addresses import entry_url, fragment
from sessiontree.web.markup import Child, Html, icon, join, tag
from sessiontree.web.panes.calls import MOST_CHARACTERS, calls_html, more_button, result_html
from sessiontree.web.site import Visit

__all__ = ["Siblings", "Transcript", "View", "articles", "siblings_html"]


_THOUGHT_WORDS = 60
_GUTTER = {"answer": "answer", "note": "file", "system": "cpu"}


class Siblings(Record, frozen=True, kw_only=True):
    """The branches that start at the same place: which of them this one is, and its neighbours."""

    place: int
    total: int
    before: str = ""
    after: str = ""


class Transcript(Record, frozen=True, kw_only=True):
    """A window of a path: ``entries`` are those from the place ``start`` on; the path has ``total`` of them.

    ``around`` are entries before and after the window, for calls whose results are in another window.
    """

    leaf: str | None = None
    total: int = 0
    start: int = 0
    entries: tuple[Entry, ...] = ()
    around: tuple[Entry, ...] = ()
    siblings: dict[str, Siblings] = {}
    labels: dict[str, str] = {}

    @property
    def end(self) -> int:
        """The place behind the last entry."""
        return self.start + len(self.entries)


class View(Record, frozen=True, kw_only=True):
    """How a thread is looked at: its labels by entry, and who runs a turn on it."""

    thread: Thread
    labels: Mapping[str, tuple[str, ...]] = {}
    holder: str = ""
    is_whole: bool = False


def articles(visit: Visit, view: View, shown: Transcript) -> Html:
    """The articles of a window."""
    everything = [*shown.around, *shown.entries]
    steps: dict[str, list[Step]] = {}
    for step in steps_of(everything, view.thread.workspace):
        steps.setdefault(step.entry.id, []).append(step)
    called = {step.call.id for found in steps.values() for step in found}
    answered = set(results_in(everything))
    made = _Articles(visit, view, shown, steps, called & answered)
    return tag(
        "section",
        [made.article(entry, shown.start + at) for at, entry in enumerate(shown.entries)],
        class_="pg",
        data_start=shown.start,
        data_end=shown.end,
    )


def siblings_html(thread_id: str, found: Siblings) -> Html:
    """The arrows to the other branches that start here."""

    def arrow(target: str, sign: str, name: str) -> Html:
        if not target:
            return tag("span", icon(sign, is_small=True), class_="no")
        href = entry_url(thread_id, target)
        return tag("a", icon(sign, is_small=True), href=href, aria_label=name, data_sibling=True)

    return tag(
        "span",
        arrow(found.before, "left", "Previous branch"),
        tag("b", found.place),
        f"/{found.total}",
        arrow(found.after, "right", "Next branch"),
        class_="sib",
        title="Sibling branches (h, l)",
    )


class _Articles:
    def __init__(
        self, visit: Visit, view: View, shown: Transcript, steps: Mapping[str, Sequence[Step]], paired: set[str]
    ) -> None:
        self._visit = visit
        self._view = view
        self._siblings = shown.siblings
        self._head = shown.leaf
        self._steps = steps
        self._paired = paired

    def article(self, entry: Entry, place: int) -> Html | None:
        """An entry; None for one that a reader does not see."""
        if is_prompt(entry) and entry.message is not None:
            return self._framed(entry, place, "prompt", "Prompt", self._prompt(entry, entry.message))
        if entry.message is not None:
            return self._message(entry, entry.message, place)
        line = self._event(entry)
        return None if line is None else self._framed(entry, place, *line)

    def _framed(self, entry: Entry, place: int, kind: str, name: str, body: Child) -> Html:
        labels = [
            tag("span", icon("flag", is_small=True), label, class_="chip label")
            for label in self._view.labels.get(entry.id, ())
        ]
        return tag(
            "article",
            body,
            tag("div", labels, class_="marks") if labels else None,
            class_=f"e {kind}",
            id=fragment(entry.id),
            tabindex=-1,
            aria_label=name,
            data_id=entry.id,
            data_at=place,
        )

    def _prompt(self, entry: Entry, message: Message) -> Html:
        found = self._siblings.get(entry.id)
        meta = tag(
            "div",
            tag("span", "You"),
            self._time(entry),
            tag("span", siblings_html(self._view.thread.id, found)) if found else None,
            class_="meta dots",
        )
        return tag(
            "div",
            icon("prompt"),
            tag("div", _parts(message, is_whole=self._view.is_whole), class_="md", dir="auto"),
            meta,
            class_="bub",
        )

    def _message(self, entry: Entry, message: Message, place: int) -> Html | None:
        loose = [result for result in message.tool_results if result.call_id not in self._paired]
        steps = self._steps.get(entry.id, ())
        said = _parts(message, is_whole=self._view.is_whole)
        if message.role == "system":
            return self._framed(entry, place, "event", "System prompt", _folded("cpu", "System prompt", said))
        if not said and not steps and not loose:
            return None
        is_last = entry.id == self._head and bool(self._view.holder)
        body = (
            tag("div", icon("answer"), class_="gl", aria_hidden=True),
            tag(
                "div",
                tag("div", said, class_="md", dir="auto") if said else None,
                calls_html(steps, is_whole=self._view.is_whole, is_running=is_last or self._is_running(entry)),
                [result_html(result, is_whole=self._view.is_whole) for result in loose],
                self._foot(entry) if message.text.strip() or entry.id in self._siblings else None,
            ),
        )
        name = "Assistant" if message.role == "assistant" else role_of(entry).capitalize()
        return self._framed(entry, place, "answer" if steps or message.role == "assistant" else "result", name, body)

    def _is_running(self, entry: Entry) -> bool:
        return bool(self._view.holder) and entry.id == self._view.thread.leaf

    def _foot(self, entry: Entry) -> Html | None:
        facts: list[str] = []
        if isinstance(entry.payload, AssistantMessage) and entry.payload.is_partial:
            facts.append("interrupted")
        facts += [name for name in (getattr(entry.payload, "model", ""),) if name]
        found = reported_usage(entry.payload)
        if found is not None:
            usage, model = found
            read = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
            facts += [f"{count(read)} in", f"{count(usage.output_tokens)} out"]
            facts += [words for words in (amount_of(cost_of(usage, model, PRICES)).words,) if words]
        found_siblings = self._siblings.get(entry.id)
        if not facts and found_siblings is None:
            return None
        arrows = siblings_html(self._view.thread.id, found_siblings) if found_siblings else None
        spans = [tag("span", one) for one in facts]
        return tag("div", spans, tag("span", arrows) if arrows else None, class_="meta dots foot")

    def _time(self, entry: Entry) -> Html:
        moment = entry.created_at
        is_today = moment.astimezone(self._visit.now.tzinfo).date() == self._visit.now.date()
        shown = clock(moment, self._visit.now)
        shown = shown if is_today else f"{day(moment, self._visit.now)}, {shown}"
        return tag("time", shown, datetime=f"{moment:%Y-%m-%dT%H:%M:%SZ}")

    def _event(self, entry: Entry) -> tuple[str, str, Child] | None:
        """Class, name and body of an entry that is no message."""
        is_whole = self._view.is_whole
        match entry.payload:
            case Compaction() as compaction:
                return "event rule", "Compaction", _compaction(compaction, is_whole=is_whole)
            case Checkpoint(files=files, root=root):
                said = f"Checkpoint of {plural(files, 'file')}"
                restore = tag("button", "Restore…", class_="lnk", data_do="restore", type="button")
                where = tag("span", root, class_="mono dim cut")
                return "event", "Checkpoint", _line("stack", said, where, self._only_writable(restore))
            case RunFailure(error=error):
                return "event fail", "Failure", _line("cross", "The run failed", tag("span", error, class_="pre"))
            case TurnMarker(status="failed" | "aborted" as status, reason=reason):
                return "event fail", "Failure", _line("cross", f"Turn {status}", tag("span", reason, class_="pre"))
            case BranchSummary(summary=said) if said:
                body = _markdown(summary_text(said), is_whole=is_whole)
                return "event", "Summary of a branch", _folded("tree", "Summary of the branch that was left", body)
            case Memory(text=said) | ThreadInfo(text=said) if said:
                return "event", "Note", _folded("file", one_line(said, 120), _markdown(said, is_whole=is_whole))
            case ModelChange(model=model, provider=provider) if model and not is_bookkeeping(entry):
                return "event", "Model", _line("cpu", f"Now with {model}", tag("span", provider, class_="dim"))
            case Custom(name=name) if name:
                return "event", "Custom entry", _line("json", name)
            case UnknownPayload():
                return "event", "Unknown entry", _line("warn", "An entry of a newer version", tag("span", entry.type))
            case _:
                return None

    def _only_writable(self, button: Html) -> Html | None:
        return None if self._visit.site.is_read_only else button


def _line(sign: str, said: str, *more: Child) -> Html:
    return tag("div", icon(sign), tag("span", said), more, class_="ev")


def _folded(sign: str, said: str, body: Child) -> Html:
    summary = tag("summary", icon("right", is_small=True), icon(sign, is_small=True), tag("span", said, class_="cut"))
    return tag("details", summary, tag("div", body, class_="md"), class_="think")


def _compaction(compaction: Compaction, *, is_whole: bool) -> Child:
    if compaction.reverts:
        return _line("compact", "The last compaction was taken back")
    sizes = ""
    if compaction.tokens_before and compaction.tokens_after:
        sizes = f"{count(compaction.tokens_before)} → {count(compaction.tokens_after)} tokens"
    head = tag(
        "div",
        icon("compact"),
        tag("b", "Compacted"),
        tag("span", sizes, class_="dim"),
        tag("button", "Uncompact", class_="lnk write", data_do="uncompact", type="button"),
        class_="ev",
    )
    if not compaction.summary:
        return head
    return [
        head,
        _folded("file", "Summary of what came before", _markdown(summary_text(compaction.summary), is_whole=is_whole)),
    ]


def _parts(message: Message, *, is_whole: bool) -> list[Child]:
    return [shown for part in message.parts if (shown := _part(part, is_whole=is_whole))]


def _markdown(said: str, *, is_whole: bool) -> Html:
    shown = said if is_whole else said[:MOST_CHARACTERS]
    # Code that is wider than the page is scrolled, also with the keyboard.
    html = Html(markdown(shown).replace("<pre>", '<pre tabindex="0">'))
    return join(html, more_button(len(said) - len(shown), "character"))


def _part(part: object, *, is_whole: bool) -> Child:
    match part:
        case TextPart(text=said) if said.strip():
            return _markdown(said, is_whole=is_whole)
        case ReasoningPart(text=thought) if thought.strip():
            gist = one_line(thought, _THOUGHT_WORDS)
            summary = tag(
                "summary",
                icon("right", is_small=True),
                icon("thought", is_small=True),
                f"Thought, {plural(len(thought.split()), 'word')} ",
                tag("span", f"· {gist}", class_="dim cut"),
            )
            return tag("details", summary, tag("div", Html(preformatted(thought))), class_="think")
        case ImagePart():
            return tag("figure", Html(image(part)))
        case FilePart(name=name, mime=mime):
            return tag("p", icon("file", is_small=True), f" {name or 'a file'} ", tag("span", mime, class_="dim"))
        case OpaquePart(provider=provider, block=block):
            return tag(
                "details", tag("summary", f"A block of {provider}"), Html(preformatted(str(block))), class_="think"
            )
        case ToolResultPart():
            return None
        case _:
            return None
