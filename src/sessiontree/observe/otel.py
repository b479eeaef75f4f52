"""OpenTelemetry: a span for each verb, command and query, and metrics. Needs ``sessiontree[otel]``."""

from __future__ import annotations

from collections.abc import Mapping

from sessiontree.errors import MissingExtraError
from sessiontree.model.observed import CommitDone, GroupWritten, Observed, Observer
from sessiontree.observe.log import part_of

try:
    from opentelemetry import metrics, trace
    from opentelemetry.trace import SpanKind, Status, StatusCode
except ModuleNotFoundError as error:
    raise MissingExtraError("the OpenTelemetry observer", "otel") from error

__all__ = ["otel_observer"]


def otel_observer(
    *, tracer_provider: trace.TracerProvider | None = None, meter_provider: metrics.MeterProvider | None = None
) -> Observer:
    """Return an observer that makes spans and metrics with the providers given, or the global ones.

    A span is a child of the span that is current where the verb was called. Metrics: ``sessiontree.duration`` by part and
    name, ``sessiontree.wait`` before a group is written, ``sessiontree.group.size``, ``sessiontree.group.duration`` (the write
    with its sync) and ``sessiontree.lease.conflicts``.
    """
    tracer = trace.get_tracer("sessiontree", tracer_provider=tracer_provider)
    meter = metrics.get_meter("sessiontree", meter_provider=meter_provider)
    durations = meter.create_histogram(
        "sessiontree.duration", unit="s", description="Time of verbs, commands, queries."
    )
    waits = meter.create_histogram(
        "sessiontree.wait", unit="s", description="Time before a command's group is written."
    )
    sizes = meter.create_histogram("sessiontree.group.size", unit="{command}", description="Commands in a group.")
    writes = meter.create_histogram("sessiontree.group.duration", unit="s", description="Time of a write and its sync.")
    conflicts = meter.create_counter("sessiontree.lease.conflicts", unit="{conflict}", description="Leases of others.")

    def observe(event: Observed) -> None:
        part = part_of(event)
        if isinstance(event, GroupWritten):
            sizes.record(event.size)
            writes.record(event.seconds)
            _span(tracer, "group", event, {"sessiontree.group.size": event.size})
            return
        attributes = {"sessiontree.part": part, "sessiontree.name": event.name}
        durations.record(event.seconds, attributes | ({"error.type": event.error} if event.error else {}))
        if isinstance(event, CommitDone):
            waits.record(event.wait_seconds)
        if part == "leases":
            conflicts.add(1, {"error.type": event.error})
        thread = getattr(event, "thread_id", "")
        _span(tracer, event.name, event, attributes | ({"sessiontree.thread_id": thread} if thread else {}))

    return observe


def _span(tracer: trace.Tracer, name: str, event: Observed, attributes: Mapping[str, str | int]) -> None:
    span = tracer.start_span(
        f"sessiontree {name}", kind=SpanKind.INTERNAL, attributes=attributes, start_time=event.started_ns
    )
    if event.error:
        span.set_attribute("error.type", event.error)
        span.set_status(Status(StatusCode.ERROR))
    span.end(end_time=event.started_ns + int(event.seconds * 1e9))
