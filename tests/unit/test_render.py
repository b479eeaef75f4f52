"""Short texts for people: ids that can be typed, text cut by cells, turns and what they took."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import sessiontree
from sessiontree.model import Entry
from sessiontree.render.branches import Branches
from sessiontree.render.cells import cell_width, cut_middle, fit, wrap
from sessiontree.render.figures import count, duration, money, money_column, size
from sessiontree.render.ids import ShortIds, is_chosen
from sessiontree.render.steps import figures_of, figures_of_turn, steps_of
from sessiontree.render.turns import answer_of, branch_count, is_cut_off, tokens_of, turns_of
from sessiontree.stores.listing import matching_ids

IDS = st.lists(st.one_of(st.uuids().map(str), st.text("ab01-", min_size=1, max_size=9)), min_size=1, unique=True)


@given(IDS)
def test_a_short_id_finds_its_own_id_and_no_other(ids: list[str]) -> None:
    names = ShortIds(ids)
    for name in ids:
        assert matching_ids(ids, names[name]) == [name]
        assert len(names[name]) >= min(4, len(name))


@given(st.text(max_size=60), st.integers(1, 40))
def test_a_cut_text_is_never_wider_than_its_room(text: str, cells: int) -> None:
    printable = "".join(letter for letter in text if letter.isprintable())
    assert cell_width(fit(printable, cells)) <= cells
    assert cell_width(cut_middle(printable, cells)) <= cells
    assert all(cell_width(line) <= max(2, cells) for line in wrap(printable, cells))


@pytest.mark.parametrize(
    ("name", "chosen"),
    [("odd-keys", True), ("fix-the-login-test", True), ("52e6b438", False), ("msg_01Ab3De5F6", False)],
)
def test_a_name_that_a_person_chose_is_told_from_a_made_one(name: str, chosen: bool) -> None:
    assert is_chosen(name) is chosen


@pytest.mark.parametrize("number", [0, 9_999, 10_000, 99_949, 99_950, 999_499, 999_500, 12_345_678, 10**13])
def test_counts_and_sizes_stay_narrow(number: int) -> None:
    assert len(count(number)) <= 6
    assert len(size(number)) <= 8


def test_amounts_of_a_column_have_the_same_decimals() -> None:
    rows = [(amount, "USD", False) for amount in (171.2, 31.04, 0.0, None)]
    assert money_column(rows) == ["$171.20", "$31.04", "$0", "–"]
    assert (money(99.5), money(100.4), money(3, "EUR")) == ("$99.50", "$100", "€3.00")
    assert (duration(59.7), duration(599.6), duration(None)) == ("1m 00s", "10m", "–")


def entries(*payloads: sessiontree.Payload, seconds: int = 5) -> list[Entry]:
    return [
        Entry(id=f"e{number}", thread_id="t", parent=f"e{number - 1}" if number else None,
              created_ns=number * seconds * 10**9, payload=payload)
        for number, payload in enumerate(payloads)
    ]  # fmt: skip


def test_a_turn_goes_from_a_message_to_the_next_and_says_what_it_took() -> None:
    usage = sessiontree.Usage(input_tokens=100, output_tokens=20, cost=0.25)
    path = entries(
        sessiontree.user("mend it"),
        sessiontree.assistant("", calls=[sessiontree.call("c", "bash", '{"command": "pytest"}')], model="m", usage=usage),
        sessiontree.tool_result("c", "1 failed", is_error=True),
        sessiontree.assistant("It is broken.", model="m", usage=usage),
        sessiontree.user("thanks"),
    )  # fmt: skip
    first, second = turns_of(path)
    answer = answer_of(first)
    assert answer is not None
    assert (first.prompt, answer.id, second.entries) == (path[0], "e3", ())
    figures = figures_of(first.all_entries)
    assert (figures.steps, figures.failures, figures.seconds, figures.models) == (1, 1, 15.0, ("m",))
    assert (figures.tokens.count, figures.cost.amount, figures.cost.is_estimate) == (120, 0.5, False)
    (step,) = steps_of(path)
    assert (step.seconds, step.gist.outcome) == (5.0, "1 failed")


def test_the_time_of_a_further_answer_does_not_hold_that_of_the_answers_before_it() -> None:
    prompt, first, again, more = entries(
        sessiontree.user("mend it"), sessiontree.assistant("So."), sessiontree.assistant("Or so."), sessiontree.assistant("Done."),
    )  # fmt: skip
    again = replace(again, parent=prompt.id)
    branches = Branches([prompt, first, again, more], more.id)
    (turn,) = turns_of([prompt, again, more])
    assert figures_of_turn(turn, branches).seconds == 5.0
    (turn,) = turns_of([prompt, first])
    assert figures_of_turn(turn, branches).seconds == 5.0


def test_a_path_is_cut_off_while_a_call_waits_or_after_a_failure() -> None:
    asked = [sessiontree.user("go"), sessiontree.assistant("", calls=[sessiontree.call("c", "bash", "{}")])]
    assert is_cut_off(entries(*asked))
    assert not is_cut_off(entries(*asked, sessiontree.tool_result("c", "done")))
    assert is_cut_off(entries(*asked, sessiontree.TurnMarker(status="aborted")))
    assert not is_cut_off(entries(*asked, sessiontree.TurnMarker(status="aborted"), sessiontree.user("again")))


def test_tokens_are_those_of_the_provider_until_a_compaction_makes_them_old() -> None:
    with sessiontree.open("memory:") as journal:
        thread = journal.create_thread()
        journal.append(thread.id, sessiontree.user("hello"))
        assert tokens_of(journal.thread(thread.id), journal.path(thread.id)).is_estimate
        journal.append(
            thread.id, sessiontree.assistant("hi", usage=sessiontree.Usage(input_tokens=70, output_tokens=7))
        )
        found = tokens_of(journal.thread(thread.id), journal.path(thread.id))
        assert (found.count, found.is_estimate) == (77, False)
        journal.replace_context(thread.id, "they said hello")
        assert tokens_of(journal.thread(thread.id), journal.path(thread.id)).is_estimate


def test_branches_are_counted_by_what_there_is_to_read() -> None:
    with sessiontree.open("memory:") as journal:
        thread = journal.create_thread()
        first = journal.append(thread.id, sessiontree.user("one"))
        journal.append(thread.id, sessiontree.assistant("two"))
        assert branch_count(journal.entries(thread.id)) == 1
        journal.label(thread.id, first.id, "start")
        assert branch_count(journal.entries(thread.id)) == 1
        journal.rewind(thread.id, first.id)
        journal.append(thread.id, sessiontree.assistant("another"))
        assert branch_count(journal.entries(thread.id)) == 2
