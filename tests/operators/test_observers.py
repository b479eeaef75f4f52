"""Observers are told what was done and how long it took, never what was said, and cannot break anything."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

import sessiontree as st
from opened import url_of
from sessiontree.model.observed import CommitDone, GroupWritten, Observed, OperationDone, ReadDone
from sessiontree.observe import log_observer
from sessiontree.observe.otel import otel_observer

SECRET = "the needle in every field"


def use(journal: st.Journal) -> None:
    thread = journal.create_thread("t", title=SECRET)
    journal.append(thread.id, st.user(SECRET))
    journal.search("needle")
    journal.compact("t")
    journal.acquire_lease("t", owner="a", turn_id="1")
    with pytest.raises(st.ActiveTurnError):
        journal.acquire_lease("t", owner="b", turn_id="2")


@pytest.mark.parametrize("store", ["memory", "sqlite", "jsonl", "postgres"])
def test_an_observer_is_told_about_every_verb_command_and_query(store: str, tmp_path: Path) -> None:
    events: list[Observed] = []
    with st.open(url_of(store, tmp_path), observer=events.append) as journal:
        use(journal)
        place = journal.store.place
    assert SECRET not in repr(events)
    assert {event.place for event in events} == {place}
    assert all(event.seconds >= 0 and event.started_ns > 0 for event in events)
    commits = [event for event in events if isinstance(event, CommitDone)]
    assert [event.name for event in commits if not event.error][:2] == ["CreateThread", "Append"]
    assert all(event.wait_seconds <= event.seconds for event in commits)
    assert [(event.name, event.error) for event in commits if event.error] == [("AcquireLease", "ActiveTurnError")]
    assert {"compact", "search", "create_thread"} <= {e.name for e in events if isinstance(e, OperationDone)}
    assert "Search" in {event.name for event in events if isinstance(event, ReadDone)}
    groups = [event for event in events if isinstance(event, GroupWritten)]
    assert sum(event.size for event in groups) == (0 if store == "postgres" else len(commits))


def test_commands_of_many_tasks_are_written_in_groups_and_say_how_long_they_waited(tmp_path: Path) -> None:
    events: list[Observed] = []

    async def run() -> None:
        async with st.open_async(url_of("sqlite", tmp_path), observer=events.append) as journal:
            await journal.create_thread("t")
            await asyncio.gather(*(journal.append("t", st.user("x")) for _ in range(50)))

    asyncio.run(run())
    assert max(event.size for event in events if isinstance(event, GroupWritten)) > 1
    assert any(event.wait_seconds > 0 for event in events if isinstance(event, CommitDone))


def test_an_observer_that_fails_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def failing(event: Observed) -> None:
        raise RuntimeError("no")

    with st.open(tmp_path / "j.db", observer=failing) as journal:
        journal.create_thread("t")
        journal.append("t", st.user("hello"))
        assert len(journal.path("t")) == 1
    assert {record.name for record in caplog.records} == {"sessiontree.observe"}


def test_the_log_has_a_logger_for_each_part_and_fields(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "sessiontree")
    with st.open("memory:", observer=log_observer(slow_seconds=None)) as journal:
        use(journal)
    assert SECRET not in caplog.text
    parts = {record.name.removeprefix("sessiontree.") for record in caplog.records}
    assert parts == {"journal", "commits", "groups", "reads", "search", "compaction", "leases"}
    append = next(record for record in caplog.records if getattr(record, "operation", "") == "Append")
    assert (append.__dict__["thread_id"], append.__dict__["store"]) == ("t", "memory:")
    assert append.__dict__["seconds"] > 0
    (conflict,) = [record for record in caplog.records if record.name == "sessiontree.leases"]
    assert (conflict.levelname, conflict.__dict__["error"]) == ("INFO", "ActiveTurnError")


def test_slow_operations_are_warnings(caplog: pytest.LogCaptureFixture) -> None:
    with st.open("memory:", observer=log_observer(slow_seconds=0)) as journal:
        journal.create_thread("t")
    assert {record.levelname for record in caplog.records} == {"WARNING"}
    assert all(record.getMessage().startswith("slow: ") for record in caplog.records)
    caplog.clear()
    with st.open("memory:", observer=log_observer(slow_seconds=60)) as journal:
        journal.create_thread("t")
    assert caplog.records == []


def test_open_telemetry_gets_spans_and_metrics(tmp_path: Path) -> None:
    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracers, meters = TracerProvider(), MeterProvider(metric_readers=[reader])
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    observer = otel_observer(tracer_provider=tracers, meter_provider=meters)
    with (
        st.open(tmp_path / "j.db", observer=observer) as journal,
        tracers.get_tracer("test").start_as_current_span("turn") as parent,
    ):
        use(journal)
    found = {span.name: span for span in spans.get_finished_spans()}
    assert {"sessiontree Append", "sessiontree Search", "sessiontree compact", "sessiontree group"} <= found.keys()
    assert found["sessiontree Append"].parent is not None
    assert found["sessiontree Append"].parent.span_id == parent.get_span_context().span_id
    assert found["sessiontree AcquireLease"].status.status_code == StatusCode.ERROR
    assert SECRET not in "".join(span.to_json() for span in found.values())
    data = reader.get_metrics_data()
    assert data is not None
    names = {metric.name for each in data.resource_metrics for scope in each.scope_metrics for metric in scope.metrics}
    assert names == {
        "sessiontree.duration",
        "sessiontree.wait",
        "sessiontree.group.size",
        "sessiontree.group.duration",
        "sessiontree.lease.conflicts",
    }
    tracers.shutdown()
    meters.shutdown()


def test_rare_events_are_logged_without_an_observer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "sessiontree")
    with st.open(tmp_path / "j.db") as journal:
        journal.create_thread("t")
        journal.backup(tmp_path / "backups")
    (record,) = caplog.records
    assert record.name == "sessiontree.backup"
    assert record.__dict__["store"] == str(tmp_path / "j.db")
