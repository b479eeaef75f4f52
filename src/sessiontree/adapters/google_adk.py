"""Sessions of Google's Agent Development Kit in a journal: ``Runner(session_service=SessionTreeSessionService(url), …)``.

A session is a thread, an event an entry. The state of a session is in the metadata of its thread, that of an app or a user
in a document. An event and all that it changes are one commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Self
from uuid import uuid4

import msgspec

import sessiontree as st
from sessiontree.adapters._adapter import AsyncAdapter
from sessiontree.adapters._extra import imports_of_extra
from sessiontree.adapters._records import kept, record_of, thread_id_of
from sessiontree.model import convert, json_decoder
from sessiontree.model.builders import payload_of

with imports_of_extra("google-adk"):
    from google.adk.errors import StaleSessionError
    from google.adk.errors.already_exists_error import AlreadyExistsError
    from google.adk.errors.session_not_found_error import SessionNotFoundError
    from google.adk.events import Event
    from google.adk.sessions import BaseSessionService, Session, State
    from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse
    from pydantic_core import to_jsonable_python

__all__ = ["SessionTreeSessionService"]

FRAMEWORK = "google-adk"

Values = dict[str, Any]

_APP = "app"
_DIALECT = st.DIALECTS["gemini"]
_EVENT_TYPES = ("user_message", "assistant_message", "tool_call", "tool_result", "event")


class Facts(st.Record, frozen=True, kw_only=True):
    """What a thread has of its session: the state after the entry ``at``, and the one that it was created with."""

    updated: float
    at: str | None = None
    state: Values = {}
    initial: Values = {}


class Scopes(NamedTuple):
    """State by scope, without the prefixes. Temporary state is nowhere."""

    app: Values
    user: Values
    session: Values

    @classmethod
    def of(cls, state: Values) -> Self:
        """Split a state by its prefixes, as JSON; what JSON has no form for becomes a text."""
        plain: Values = to_jsonable_python(state, serialize_unknown=True)
        prefixes = (State.APP_PREFIX, State.USER_PREFIX, State.TEMP_PREFIX)
        app, user = (
            {name.removeprefix(prefix): value for name, value in plain.items() if name.startswith(prefix)}
            for prefix in prefixes[:2]
        )
        return cls(app, user, {name: value for name, value in plain.items() if not name.startswith(prefixes)})

    def merged(self) -> Values:
        """Return one state with prefixes."""
        return {
            **self.session,
            **{State.APP_PREFIX + name: value for name, value in self.app.items()},
            **{State.USER_PREFIX + name: value for name, value in self.user.items()},
        }


class SessionTreeSessionService(AsyncAdapter, BaseSessionService):
    """A session service. After a rewind or an undo of its thread, a session has the events and the state of that place."""

    async def create_session(
        self, *, app_name: str, user_id: str, state: Values | None = None, session_id: str | None = None
    ) -> Session:
        """Create a session. Raises AlreadyExistsError if the id is taken."""
        journal = await self.journal()
        name = (session_id or "").strip() or str(uuid4())
        key = _key(app_name, user_id, name)
        given = Scopes.of(state or {})
        facts = Facts(updated=journal.clock() / 1e9, state=given.session, initial=given.session)
        while True:
            changes = st.Changes().create_thread(_thread_id(key), key=key, custom=_custom(facts))
            try:
                await journal.commit(await _with_documents(journal, changes, key, given))
            except st.ThreadExistsError as error:
                raise AlreadyExistsError(f"Session with id {name} already exists.") from error
            except st.StaleDocumentError:
                continue
            return _session(key, facts, [], await _shared(journal, app_name, user_id))

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """Return a session with its events, or with those that ``config`` asks for; ``None`` if there is none."""
        journal = await self.journal()
        key = _key(app_name, user_id, session_id.strip())
        try:
            thread = await journal.thread(_thread_id(key))
            facts = await _facts(journal, thread)
            events = await _events(journal, thread, config or GetSessionConfig())
        except st.ThreadNotFoundError:
            return None
        return _session(key, facts, events, await _shared(journal, app_name, user_id))

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """Return the sessions of an app or of one of its users, without events; the one that changed last is the last."""
        journal = await self.journal()
        filters: st.ThreadFilters = {"channel": FRAMEWORK, "agent": app_name, "limit": 1000}
        if user_id is not None:
            filters["peer"] = user_id
        shared = {document.key: document.value for document in await journal.documents.list(_scope(app_name))}
        sessions = [
            _session(thread.key, await _facts(journal, thread), [], shared)
            async for thread in journal.iter_threads(**filters)
        ]
        sessions.sort(key=lambda session: (session.last_update_time, session.user_id, session.id))
        return ListSessionsResponse(sessions=sessions)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Delete a session for good. Entries that a fork of it shows are kept."""
        journal = await self.journal()
        with suppress(st.ThreadNotFoundError):
            await journal.delete_thread(_thread_id(_key(app_name, user_id, session_id.strip())))

    async def get_user_state(self, *, app_name: str, user_id: str) -> Values:
        """Return the state of a user, without prefixes."""
        journal = await self.journal()
        return (await _shared(journal, app_name, user_id)).get(_user(user_id), {})

    async def append_event(self, session: Session, event: Event) -> Event:
        """Append an event, and change all state that it changes in the same commit.

        Raises StaleSessionError if the session has been changed since it was read: it is later than the given one, whose last
        event is not the last one either. The time alone would not do, as programs that pass a session on round it.
        """
        if event.partial:
            return event
        await self._store(session, event)
        session.last_update_time = event.timestamp
        return await super().append_event(session=session, event=event)

    async def thread(self, session: Session) -> st.AsyncThreadHandle:
        """Return the thread of a session: ``rewind`` to the id of an event, ``undo``, ``export`` and the other verbs."""
        return st.AsyncThreadHandle(await self.journal(), _thread_id(_key_of(session)))

    async def fork_session(
        self, session: Session, *, session_id: str | None = None, at: str | None = None, before: str | None = None
    ) -> Session:
        """Return a new session of the same user that shares the events up to ``at``, or up to the one before ``before``.

        Nothing is copied. Its state is that of the place where it begins.
        """
        journal = await self.journal()
        key = _key(session.app_name, session.user_id, session_id or str(uuid4()))
        await journal.fork(_thread_id(_key_of(session)), at=at, before=before, new_id=_thread_id(key), key=key)
        forked = await self.get_session(app_name=key.agent, user_id=key.peer, session_id=key.thread)
        assert forked is not None
        return forked

    async def import_sessions(self, source: BaseSessionService, *, app_name: str, user_id: str | None = None) -> int:
        """Copy the sessions of an app, or of one of its users, from any other service, and return their number.

        Sessions that are here already are left alone, so it can be repeated.
        """
        journal = await self.journal()
        copied = 0
        for listed in (await source.list_sessions(app_name=app_name, user_id=user_id)).sessions:
            session = await source.get_session(app_name=app_name, user_id=listed.user_id, session_id=listed.id)
            with suppress(st.ThreadExistsError):
                copied += await _copy(journal, session) if session else 0
        return copied

    async def _store(self, session: Session, event: Event) -> None:
        journal = await self.journal()
        key = _key_of(session)
        thread_id = _thread_id(key)
        given = Scopes.of(event.actions.state_delta)
        entry = entry_of(event)
        while True:
            try:
                thread = await journal.thread(thread_id)
            except st.ThreadNotFoundError as error:
                raise SessionNotFoundError(f"Session {session.id} not found.") from error
            if thread.leaf == event.id:
                return
            facts = await _facts(journal, thread)
            if facts.updated > session.last_update_time and facts.at != _last_event(session):
                raise StaleSessionError(
                    f"Session {session.id} was modified in storage since it was read; get it again."
                )
            after = Facts(
                updated=event.timestamp, at=event.id, state={**facts.state, **given.session}, initial=facts.initial
            )
            changes = st.Changes().append(
                thread_id,
                entry,
                expect_leaf=thread.leaf,
                fields={"custom": {**thread.custom, **_custom(after)}},
                expect_version=thread.version,
            )
            try:
                await journal.commit(await _with_documents(journal, changes, key, given))
            except (st.StaleLeafError, st.StaleVersionError, st.StaleDocumentError):
                continue
            return


def _last_event(session: Session) -> str | None:
    return session.events[-1].id if session.events else None


def entry_of(event: Event) -> st.NewEntry:
    """Return the entry of an event: what it means, with the event as JSON in its origin, without temporary state."""
    return st.NewEntry(
        content=kept(_meaning(event), FRAMEWORK, _stored_form(event).model_dump_json(exclude_none=True)),
        id=event.id,
        created_ns=int(event.timestamp * 1e9),
        turn_id=event.invocation_id,
    )


def event_of(entry: st.Entry) -> Event | None:
    """Return the event that an entry was made from; ``None`` if it was made otherwise."""
    record = record_of(entry, FRAMEWORK)
    return None if record is None else Event.model_validate_json(record)


async def _copy(journal: st.AsyncJournal, session: Session) -> int:
    """Create a session as it is elsewhere. What no event of it changed, it was created with."""
    key, state = _key_of(session), Scopes.of(session.state)
    changed = {name for event in session.events for name in event.actions.state_delta}
    initial = {name: value for name, value in state.session.items() if name not in changed}
    at = session.events[-1].id if session.events else None
    facts = Facts(updated=session.last_update_time, at=at, state=state.session, initial=initial)
    entries = [entry_of(event) for event in session.events]
    while True:
        changes = st.Changes().create_thread(_thread_id(key), contents=entries, key=key, custom=_custom(facts))
        with suppress(st.StaleDocumentError):
            await journal.commit(await _with_documents(journal, changes, key, state))
            return 1


def _stored_form(event: Event) -> Event:
    delta = event.actions.state_delta
    lasting = {name: value for name, value in delta.items() if not name.startswith(State.TEMP_PREFIX)}
    if len(lasting) == len(delta):
        return event
    return event.model_copy(update={"actions": event.actions.model_copy(update={"state_delta": lasting})})


def _meaning(event: Event) -> st.Payload:
    content = event.content and event.content.model_dump(mode="json", by_alias=True, exclude_none=True)
    if content and content.get("parts"):
        with suppress(st.InvalidInputError):
            return _answer(event, content) if content.get("role") == "model" else _message(content)
    return st.Event(name=event.author)


def _message(content: Values) -> st.Payload:
    _, messages = _DIALECT.from_request({"contents": [content]})
    return payload_of(messages[0])


def _answer(event: Event, content: Values) -> st.Payload:
    usage = event.usage_metadata
    response: Values = {"candidates": [{"content": content}]}
    if usage is not None:
        response["usageMetadata"] = usage.model_dump(mode="json", by_alias=True, exclude_none=True)
    if event.model_version:
        response["modelVersion"] = event.model_version
    return _DIALECT.from_response(response)


class _Actions(msgspec.Struct):
    state_delta: Values = {}


class _Changed(msgspec.Struct):
    """The part of a stored event that changes state."""

    actions: _Actions = msgspec.field(default_factory=_Actions)
    timestamp: float = 0.0


_CHANGED = json_decoder(_Changed)


async def _facts(journal: st.AsyncJournal, thread: st.Thread) -> Facts:
    """The facts of a session at the leaf of its thread. If the leaf was moved, its events tell them."""
    facts = convert(thread.custom.get(FRAMEWORK, {"updated": thread.updated_ns / 1e9}), Facts)
    if facts.at == thread.leaf:
        return facts
    path = await journal.path(thread.id, thread.leaf, types=_EVENT_TYPES)
    changed = [_CHANGED.decode(record) for entry in path if (record := record_of(entry, FRAMEWORK)) is not None]
    state = dict(facts.initial)
    for change in changed:
        state |= Scopes.of(change.actions.state_delta).session
    updated = changed[-1].timestamp if changed else thread.created_ns / 1e9
    return Facts(updated=updated, at=thread.leaf, state=state, initial=facts.initial)


async def _events(journal: st.AsyncJournal, thread: st.Thread, config: GetSessionConfig) -> list[Event]:
    if config.num_recent_events == 0:
        return []
    path = await journal.path(thread.id, thread.leaf, limit=config.num_recent_events, types=_EVENT_TYPES)
    events = [event for entry in path if (event := event_of(entry)) is not None]
    if config.after_timestamp is None:
        return events
    return [event for event in events if event.timestamp >= config.after_timestamp]


async def _shared(journal: st.AsyncJournal, app_name: str, user_id: str) -> dict[str, Values]:
    """The state of an app and of one of its users, by the keys of their documents."""
    found = [await journal.documents.get(_scope(app_name), name) for name in (_APP, _user(user_id))]
    return {document.key: document.value for document in found if document is not None}


async def _with_documents(
    journal: st.AsyncJournal, changes: st.Changes, key: st.SessionKey, given: Scopes
) -> st.Changes:
    """Add to changes what a state changes of its app and its user."""
    scope = _scope(key.agent)
    for name, values in ((_APP, given.app), (_user(key.peer), given.user)):
        if values:
            known = await journal.documents.get(scope, name)
            state = {**(known.value if known else {}), **values}
            changes.put_document(scope, name, state, expect_version=known.version if known else 0)
    return changes


def _session(key: st.SessionKey, facts: Facts, events: Sequence[Event], shared: dict[str, Values]) -> Session:
    scopes = Scopes(shared.get(_APP, {}), shared.get(_user(key.peer), {}), facts.state)
    return Session(
        id=key.thread,
        app_name=key.agent,
        user_id=key.peer,
        state=scopes.merged(),
        events=list(events),
        last_update_time=facts.updated,
    )


def _user(user_id: str) -> str:
    return f"user:{user_id}"


def _scope(app_name: str) -> str:
    return thread_id_of(FRAMEWORK, app_name)


def _key(app_name: str, user_id: str, session_id: str) -> st.SessionKey:
    return st.SessionKey(channel=FRAMEWORK, agent=app_name, peer=user_id, thread=session_id)


def _key_of(session: Session) -> st.SessionKey:
    return _key(session.app_name, session.user_id, session.id)


def _thread_id(key: st.SessionKey) -> str:
    return thread_id_of(FRAMEWORK, key.agent, key.peer, key.thread)


def _custom(facts: Facts) -> Values:
    return {FRAMEWORK: msgspec.to_builtins(facts)}
