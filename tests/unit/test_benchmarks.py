"""The benchmarks' own arithmetic, and that one system that hangs or fails costs no more than its own figures."""

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from benchmarks import runner, system
from benchmarks.case import Case, Sample
from benchmarks.goals import GOALS
from benchmarks.plots import bars, lines, number
from benchmarks.profiles import PROFILES
from benchmarks.report import Report
from benchmarks.results import Run, load, save
from benchmarks.runner import Limits, Measured, Runner
from benchmarks.system import System
from msgspec.structs import replace

LIMITS = Limits(total_seconds=60, case_seconds=10, rounds=2, least_rounds=1, largest_size=10)
MODULE = """
import time
from benchmarks.system import System
class Good(System):
    name = "good"
    def open(self): pass
    def append(self, chat, text): pass
class Hanging(Good):
    name = "hanging"
    def append(self, chat, text): time.sleep(60)
class Failing(Good):
    name = "failing"
    def append(self, chat, text): raise ValueError("no room")
SYSTEMS = [Good, Hanging, Failing]
"""


def growing(exponent: float) -> Run:
    sizes = (10, 100, 1_000)
    measured = [Measured(case="c", system="s", size=n, samples=[{"m": 3 * n**exponent}]) for n in sizes]
    return Run(started="now", measured=measured)


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0])
def test_the_exponent_of_growth_is_found(exponent: float) -> None:
    assert growing(exponent).exponent("c", "s", "m") == pytest.approx(exponent)


def test_a_run_that_is_kept_is_read_back(tmp_path: Path) -> None:
    save(growing(1), tmp_path / "run.json")
    assert load(tmp_path / "run.json") == growing(1)


def test_goals_without_figures_are_not_measured() -> None:
    assert {goal.verdict(Run(started="now"))[1] for goal in GOALS} == {"not measured"}


def test_each_profile_is_about_a_goal() -> None:
    assert PROFILES.keys() <= {(goal.case, goal.what) for goal in GOALS}


def test_the_page_says_how_far_a_missed_goal_is_and_what_the_profile_shows() -> None:
    listed = [
        Measured(case="list 50", system=name, size=100_000, samples=[{"list 50": value}])
        for name, value in (("sessiontree SQLite", 3.0), ("sqlite3 WAL FULL", 1.0))
    ]
    goals = "\n".join(Report(Run(started="now", measured=listed), {}, {}, Path()).goals())
    assert "of 100,000, against a raw query**, 50% above the goal. " in goals
    assert PROFILES["list 50", "SQLite, of 100,000, against a raw query"] in goals
    assert goals.count("% above") + goals.count("% below") == 1


def test_plots_are_well_formed_also_with_markup_in_names() -> None:
    ET.fromstring(bars("a < b", [("<&>", "ours", 2.0, (1.0, 3.0)), ("b", "peer", 20.0, (20.0, 20.0))]))
    ET.fromstring(lines("a < b", "size", {"<&>": [(10, 1.0), (100, 2.0)], "b": [(10, 5.0)]}))


def test_numbers_have_three_digits() -> None:
    assert [number(value) for value in (0, 0.012345, 1.2345, 123.45, 1_234_567)] == [
        "0",
        "0.0123",
        "1.23",
        "123",
        "1,230,000",
    ]


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Measured]]:
    (tmp_path / "three_systems.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    three_systems = importlib.import_module("three_systems")
    case = Case(name="agent turn", about="", run=_found_by_its_name, metrics={"turn": "ms"})

    def measure(*names: str) -> dict[str, Measured]:
        systems = {system.name: system for system in three_systems.SYSTEMS if system.name in names}
        found = Runner(systems, tmp_path / "stores", LIMITS, lambda _: None).run([case])
        return {one.system: one for one in found}

    return measure


def test_what_only_reads_a_store_is_measured_before_what_appends_to_it(tmp_path: Path) -> None:
    lines: list[str] = []
    cases = [_case("append", is_appending=True), _case("full read")]
    Runner({}, tmp_path, LIMITS, lines.append).run(cases)
    assert [line.partition(":")[0] for line in lines] == ["full read", "append"]


def test_a_case_that_comes_after_the_end_says_so(tmp_path: Path) -> None:
    no_time = replace(LIMITS, total_seconds=0)
    found = Runner({"any": OnlyAppends}, tmp_path, no_time, lambda _: None).run([_case("append")])
    assert [one.error for one in found] == ["the time of the run was over"]


def test_a_peer_that_cannot_be_imported_is_left_out_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "_modules", lambda _: ["benchmarks.systems.of_nobody"])
    assert system.systems() == {}
    assert "ModuleNotFoundError" in system.left_out()["benchmarks.systems.of_nobody"]


class OnlyAppends(System):
    name = "any"
    append = None  # type: ignore[assignment]


def _case(name: str, *, is_appending: bool = False) -> Case:
    return Case(name=name, about="", run=_found_by_its_name, metrics={"m": "ms"}, is_appending=is_appending)


def _found_by_its_name(system: System, size: int) -> Iterator[Sample]:
    raise AssertionError("the worker looks the case up by its name")


def test_a_system_that_fails_loses_its_own_case_only(measured: Callable[..., dict[str, Measured]]) -> None:
    found = measured("failing", "good")
    assert len(found["good"].samples) == 2
    assert found["failing"].error == "ValueError: no room"


def test_a_system_that_hangs_is_ended(
    measured: Callable[..., dict[str, Measured]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "ANSWER_SECONDS", 0.5)
    assert measured("hanging")["hanging"].error == "no answer in 0.5 s"
