"""Drawing trees, names and harmless text: pure."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as some

import sessiontree as st
from sessiontree.cli.screen.picker import is_fuzzy_match
from sessiontree.cli.screen.progress import progress_bar
from sessiontree.model.sanitize import for_terminal, one_line
from sessiontree.render.branches import Branches
from sessiontree.render.figures import size


def entry(name: str, parent: str | None, payload: st.Payload | None = None) -> st.Entry:
    return st.Entry(id=name, thread_id="t", parent=parent, created_ns=0, payload=payload or st.user(name))


def picture(entries: list[st.Entry], leaf: str | None) -> list[str]:
    """The entries in the order in which they are drawn, indented by their depth."""
    runs = Branches(entries, leaf).runs()
    return ["  " * run.depth + one.id + ("*" if run.is_active else "") for run in runs for one in run.entries]


def test_the_active_path_runs_straight_down_and_branches_hang_from_it() -> None:
    entries = [entry("a", None), entry("b", "a"), entry("c", "b"), entry("x", "a"), entry("y", "x"), entry("z", "x")]
    assert picture(entries, "c") == ["a*", "  x", "    y", "  z", "b*", "c*"]
    assert picture(entries, "z") == ["a*", "  b", "  c", "x*", "  y", "z*"]


def test_several_roots_are_drawn_too() -> None:
    assert picture([entry("a", None), entry("b", None)], "a") == ["  b", "a*"]


def test_bookkeeping_is_left_out_and_the_head_is_what_was_last_said() -> None:
    chain = [entry("0", None), entry("1", "0", st.TurnMarker(status="started")), entry("2", "1")]
    assert picture(chain, "2") == ["0*", "2*"]
    assert Branches(chain, "1").head == "0"
    assert [one.id for run in Branches(chain, "2", shows_all=True).runs() for one in run.entries] == ["0", "1", "2"]


def test_a_hundred_thousand_entries_in_a_chain_and_in_a_comb_are_drawn() -> None:
    chain = [entry("0", None)] + [entry(str(number), str(number - 1)) for number in range(1, 100_000)]
    assert len(picture(chain, "99999")) == 100_000
    comb = [entry("0", None)]
    for number in range(1, 50_000):
        comb += [entry(str(number), str(number - 1)), entry(f"s{number}", str(number - 1))]
    assert len(picture(comb, "49999")) == len(comb)


@given(some.lists(some.integers(0, 30), min_size=1, max_size=30), some.integers(0, 29))
def test_every_entry_is_drawn_once(parents: list[int], leaf: int) -> None:
    entries = [entry("0", None)]
    entries += [entry(str(at), str(min(parent, at - 1))) for at, parent in enumerate(parents[1:], start=1)]
    drawn = picture(entries, str(min(leaf, len(entries) - 1)))
    assert sorted(int(line.strip(" *")) for line in drawn) == list(range(len(entries)))


@given(some.text())
def test_no_control_character_survives(text: str) -> None:
    clean = for_terminal(text)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]", clean)
    assert "\n" not in one_line(text, 40)
    assert len(one_line(text, 40)) <= 40


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;http://evil\x1b\\text\x1b]8;;\x1b\\", "text"),
        ("\x1b]52;c;QUJD\x07", ""),
        ("\x1b[", ""),
        ("a\x1b", "a"),
        ("tab\tstays\nso do lines", "tab\tstays\nso do lines"),
        ("back\rward", "back<U+000D>ward"),
    ],
)
def test_escape_sequences_go_and_controls_get_names(raw: str, clean: str) -> None:
    assert for_terminal(raw) == clean


def test_letters_in_order_match() -> None:
    assert is_fuzzy_match("bdgt", "Budget of March")
    assert not is_fuzzy_match("xyz", "Budget of March")


def test_a_comb_of_branches_is_indented_no_deeper_than_its_size_can_be_halved() -> None:
    with st.open("memory:") as journal:
        journal.create_thread("comb")
        for entry in reversed(journal.append_many("comb", [st.user(f"{number}") for number in range(500)])):
            journal.rewind("comb", entry.id)
            journal.append("comb", st.user("another way"))
        runs = list(Branches(journal.entries("comb"), journal.thread("comb").leaf).runs())
    assert sum(len(run.entries) for run in runs) == 1000
    assert max(run.depth for run in runs) <= 12


def test_a_sequence_without_an_end_hides_nothing_of_a_text() -> None:
    assert for_terminal("before \x1b]0;the rest\nof the text") == "before 0;the rest\nof the text"
    assert for_terminal("a\x9dhidden?") == "ahidden?"
    assert for_terminal("a\x1b]52;c;cGFzcw==\x07b") == "ab"
    assert len(for_terminal("\x9d" * 200_000)) > 0


def shown_within(capsys: pytest.CaptureFixture[str], text: str) -> str:
    """What is on stderr once the text has come."""
    shown = ""
    while text not in shown:
        shown += capsys.readouterr().err
    return shown


def test_a_clock_shows_up_in_long_work_and_becomes_a_bar_once_the_amount_is_known(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("sessiontree.cli.screen.progress._DELAY_SECONDS", 0.0)
    with progress_bar("checking the store") as progress:
        assert "0:00:0" in shown_within(capsys, "checking the store")
        progress(40, 1000)
        assert "/s" in shown_within(capsys, "40 of 1,000")
        progress(1000, 1000)
        shown_within(capsys, "1,000 of 1,000")


def test_progress_before_the_bar_appears_is_shown_when_it_does(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("sessiontree.cli.screen.progress._DELAY_SECONDS", 0.2)
    with progress_bar("checking the store") as progress:
        progress(7, 9)
        shown_within(capsys, "7 of 9")


def test_progress_in_bytes_is_shown_in_sizes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("sessiontree.cli.screen.progress._DELAY_SECONDS", 0.0)
    with progress_bar("importing", size) as progress:
        shown_within(capsys, "importing")
        progress(10_714_341, 59_415_891)
        shown_within(capsys, f"{size(10_714_341)} of {size(59_415_891)}")


def test_short_work_shows_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sessiontree.cli.screen.progress._DELAY_SECONDS", 60.0)
    with progress_bar("nothing much") as progress:
        progress(1, 2)
    assert capsys.readouterr().err == ""
