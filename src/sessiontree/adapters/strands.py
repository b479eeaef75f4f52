"""Sessions of Strands Agents in a journal: ``RepositorySessionManager("s", session_repository=SessionTreeRepository(url))``.

An agent of a session is a thread and a message an entry. The state of the agent is in the metadata of its thread; what
belongs to the session itself, and the state of groups of agents, is in documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

import sessiontree as st
from sessiontree.adapters._extra import imports_of_extra
from sessiontree.adapters._recent import Recent
from sessiontree.adapters._records import as_given, as_stored, kept, record_of, records_of, thread_id_of
from sessiontree.adapters._source import JournalSource, StoreOrJournal
from sessiontree.model.builders import payload_of

if TYPE_CHECKING:
    from strands.multiagent.base import MultiAgentBase

with imports_of_extra("strands"):
    from strands.session.session_repository import SessionRepository
    from strands.types.exceptions import SessionException
    from strands.types.session import Session, SessionAgent, SessionMessage, decode_bytes_values, encode_bytes_values

__all__ = ["SessionTreeRepository"]

FRAMEWORK = "strands"

Values = dict[str, Any]

_MESSAGES = ("user_message", "assistant_message", "tool_call", "tool_result")
_SESSION = "session"


class _End(NamedTuple):
    """Where the messages of an agent end: the leaf of its thread, and the number of its last message."""

    leaf: str | None
    number: int


class SessionTreeRepository(SessionRepository):
    """A session repository. A message that is redacted is replaced on the path; ``undo`` of its thread shows it again.

    Messages that other programs append to the thread of an agent have no number and are left out.
    """

    def __init__(self, store: StoreOrJournal) -> None:
        self._source = JournalSource(store)
        self._ends = Recent[_End]()

    @property
    def journal(self) -> st.Journal:
        """The journal, which has searches, lists and all other verbs."""
        return self._source.blocking()

    def thread(self, session_id: str, agent_id: str) -> st.ThreadHandle:
        """Return the thread of an agent: ``rewind``, ``undo``, ``export`` and the other verbs."""
        return st.ThreadHandle(self.journal, _thread_id(session_id, agent_id))

    def close(self) -> None:
        """Close the store, if it was given as a URL. A second call does nothing."""
        self._source.close()

    def create_session(self, session: Session, **kwargs: Any) -> Session:
        """Create a session. Raises SessionException if the id is taken."""
        try:
            self.journal.documents.put(_scope(session.session_id), _SESSION, session.to_dict(), expect_version=0)
        except st.StaleDocumentError as error:
            raise SessionException(f"Session {session.session_id} already exists") from error
        return session

    def read_session(self, session_id: str, **kwargs: Any) -> Session | None:
        """Return a session; ``None`` if there is none."""
        found = self.journal.documents.get(_scope(session_id), _SESSION)
        return Session.from_dict(found.value) if found else None

    def delete_session(self, session_id: str, **kwargs: Any) -> None:
        """Delete a session with its agents and messages for good, in one commit."""
        while True:
            self._check_session(session_id)
            changes = st.Changes()
            for document in self.journal.documents.list(_scope(session_id)):
                changes.delete_document(document.scope, document.key)
            for thread in self._agents(session_id):
                changes.delete_thread(thread.id)
            with suppress(st.ThreadNotFoundError):  # deleted by another process meanwhile
                self.journal.commit(changes)
                return

    def create_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        """Create an agent in a session."""
        self._check_session(session_id)
        name = session_agent.agent_id
        try:
            self.journal.create_thread(
                _thread_id(session_id, name), key=_key(session_id, name), custom=_stored_agent(session_agent)
            )
        except st.ThreadExistsError as error:
            raise SessionException(f"Agent {name} already exists in session {session_id}") from error

    def read_agent(self, session_id: str, agent_id: str, **kwargs: Any) -> SessionAgent | None:
        """Return an agent; ``None`` if there is none."""
        with suppress(st.ThreadNotFoundError):
            thread = self.journal.thread(_thread_id(session_id, agent_id))
            return SessionAgent.from_dict(as_given(thread.custom[FRAMEWORK]))
        return None

    def update_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        """Store the state of an agent. The time of its creation stays."""
        thread_id = _thread_id(session_id, session_agent.agent_id)
        while True:
            try:
                thread = self.journal.thread(thread_id)
                session_agent.created_at = as_given(thread.custom[FRAMEWORK])["created_at"]
                custom = {**thread.custom, **_stored_agent(session_agent)}
                self.journal.update_thread(thread_id, expect_version=thread.version, custom=custom)
            except st.ThreadNotFoundError as error:
                raise _no_agent(session_id, session_agent.agent_id) from error
            except st.StaleVersionError:
                continue
            return

    def create_message(self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any) -> None:
        """Append a message. Raises SessionException if its number is taken."""
        thread = self.thread(session_id, agent_id)
        known = self._ends.get(thread.id)
        try:
            if known is not None and known.number < session_message.message_id:
                with suppress(st.StaleLeafError):
                    self._append(thread, session_message, known.leaf)
                    return
            end = _read_end(thread)
            if end.number >= session_message.message_id:
                raise SessionException(f"Message {session_message.message_id} already exists in agent {agent_id}")
            self._append(thread, session_message, end.leaf)
        except st.ThreadNotFoundError as error:
            raise _no_agent(session_id, agent_id) from error
        except st.StaleLeafError as error:
            raise SessionException(f"Agent {agent_id} of session {session_id} is used by another process") from error

    def _append(self, thread: st.ThreadHandle, message: SessionMessage, leaf: str | None) -> None:
        entry = thread.append(payload_of_message(message), expect_leaf=leaf)
        self._ends.put(thread.id, _End(entry.id, message.message_id))

    def read_message(self, session_id: str, agent_id: str, message_id: int, **kwargs: Any) -> SessionMessage | None:
        """Return a message; ``None`` if there is none."""
        with suppress(st.ThreadNotFoundError):
            stored = _records(self.thread(session_id, agent_id).path_bodies(types=_MESSAGES))
            found = [record for record in stored if record["message_id"] == message_id]
            return SessionMessage.from_dict(found[0]) if found else None
        return None

    def update_message(self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any) -> None:
        """Replace a message. Those after it follow the new one."""
        thread = self.thread(session_id, agent_id)
        while True:
            try:
                leaf = thread.thread().leaf
                path = thread.path(leaf, types=_MESSAGES)
                at = [_number(entry) for entry in path].index(session_message.message_id)
            except (st.ThreadNotFoundError, ValueError) as error:
                raise SessionException(f"Message {session_message.message_id} does not exist") from error
            session_message.created_at = record_of(path[at], FRAMEWORK)["created_at"]
            later = [entry.payload for entry in path[at + 1 :]]
            new = [payload_of_message(session_message), *later]
            with suppress(st.StaleLeafError):  # another process appended meanwhile
                thread.append_many(new, parent=path[at].parent, expect_leaf=leaf)
                return

    def list_messages(
        self, session_id: str, agent_id: str, limit: int | None = None, offset: int = 0, **kwargs: Any
    ) -> list[SessionMessage]:
        """Return the messages of an agent, oldest first."""
        thread = self.thread(session_id, agent_id)
        try:
            found = thread.thread()
            records = _records_from(thread, found, offset)
        except st.ThreadNotFoundError as error:
            raise _no_agent(session_id, agent_id) from error
        return [SessionMessage.from_dict(record) for record in records[:limit]]

    def create_multi_agent(self, session_id: str, multi_agent: MultiAgentBase, **kwargs: Any) -> None:
        """Store the state of a group of agents."""
        self._check_session(session_id)
        state = encode_bytes_values(multi_agent.serialize_state())
        self.journal.documents.put(_scope(session_id), _group(multi_agent.id), state)

    def read_multi_agent(self, session_id: str, multi_agent_id: str, **kwargs: Any) -> Values | None:
        """Return the state of a group of agents; ``None`` if there is none."""
        found = self.journal.documents.get(_scope(session_id), _group(multi_agent_id))
        return cast("Values", decode_bytes_values(found.value)) if found else None

    def update_multi_agent(self, session_id: str, multi_agent: MultiAgentBase, **kwargs: Any) -> None:
        """Store the state of a group of agents that is there."""
        if self.read_multi_agent(session_id, multi_agent.id) is None:
            raise SessionException(f"MultiAgent state {multi_agent.id} in session {session_id} does not exist")
        self.create_multi_agent(session_id, multi_agent)

    def fork_session(self, session_id: str, new_session_id: str) -> None:
        """Create a session that shares the messages of all agents of another one, in one commit; nothing is copied."""
        session = self.read_session(session_id)
        if session is None:
            raise SessionException(f"Session {session_id} does not exist")
        session.session_id = new_session_id
        changes = st.Changes().put_document(_scope(new_session_id), _SESSION, session.to_dict(), expect_version=0)
        for thread in self._agents(session_id):
            agent = thread.key.thread
            changes.fork(thread.id, new_id=_thread_id(new_session_id, agent), key=_key(new_session_id, agent))
        try:
            self.journal.commit(changes)
        except st.StaleDocumentError as error:
            raise SessionException(f"Session {new_session_id} already exists") from error

    def import_session(
        self, source: SessionRepository, session_id: str, agent_ids: Sequence[str] = ("default",)
    ) -> None:
        """Copy a session with these agents from another repository, such as a FileSessionManager, in one commit."""
        session = source.read_session(session_id)
        if session is None:
            raise SessionException(f"Session {session_id} does not exist")
        changes = st.Changes().put_document(_scope(session_id), _SESSION, session.to_dict(), expect_version=0)
        for name in agent_ids:
            agent = source.read_agent(session_id, name)
            if agent is None:
                raise _no_agent(session_id, name)
            messages = [payload_of_message(message) for message in source.list_messages(session_id, name)]
            fields: st.ThreadFields = {"key": _key(session_id, name), "custom": _stored_agent(agent)}
            changes.create_thread(_thread_id(session_id, name), contents=messages, **fields)
        try:
            self.journal.commit(changes)
        except (st.StaleDocumentError, st.ThreadExistsError) as error:
            raise SessionException(f"Session {session_id} already exists") from error

    def _check_session(self, session_id: str) -> None:
        if self.read_session(session_id) is None:
            raise SessionException(f"Session {session_id} does not exist")

    def _agents(self, session_id: str) -> list[st.Thread]:
        return list(self.journal.iter_threads(channel=FRAMEWORK, peer=session_id, is_archived=None, order="created"))


def payload_of_message(message: SessionMessage) -> st.Payload:
    """Return what a message means, with the message in its origin."""
    said = message.to_message()
    parts = [part for block in said["content"] if (part := _part(cast("Values", block))) is not None]
    results = tuple(part for part in parts if isinstance(part, st.ToolResultPart))
    if results:
        meaning = payload_of(st.Message(role="tool", parts=results))
    else:
        meaning = payload_of(st.Message(role=said["role"], parts=tuple(parts)))
    return kept(meaning, FRAMEWORK, message.to_dict())


def _part(block: Values) -> st.Part | None:
    match block:
        case {"text": str(text)}:
            return st.TextPart(text=text)
        case {"toolUse": {"toolUseId": str(call_id), "name": str(name), "input": given}}:
            return st.call(call_id, name, given if isinstance(given, str) else _json(given))
        case {"toolResult": {"toolUseId": str(call_id), "content": content, **rest}}:
            texts = [st.TextPart(text=item.get("text") or _json(encode_bytes_values(item))) for item in content]
            return st.ToolResultPart(call_id=call_id, parts=tuple(texts), is_error=rest.get("status") == "error")
        case {"reasoningContent": {"reasoningText": {"text": str(text)}}}:
            return st.ReasoningPart(text=text, provider="bedrock")
        case _:
            kind = next(iter(block), "")
            return st.TextPart(text=f"[{kind}]") if kind else None


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _records(bodies: Sequence[st.EntryBody]) -> list[Values]:
    return [record for record in records_of(bodies, FRAMEWORK) if record is not None]


def _records_from(thread: st.ThreadHandle, found: st.Thread, offset: int) -> list[Values]:
    """The messages after the first ``offset`` ones. Mostly these have the numbers before ``offset``, and are not read."""
    if offset:
        end = _records(thread.path_bodies(found.leaf, limit=max(0, found.messages - offset), types=_MESSAGES))
        if end and end[0]["message_id"] == offset:
            return end
    return _records(thread.path_bodies(found.leaf, types=_MESSAGES))[offset:]


def _read_end(thread: st.ThreadHandle) -> _End:
    leaf = thread.thread().leaf
    last = _records(thread.path_bodies(leaf, limit=1, types=_MESSAGES))
    if not last:  # others have appended, or there are no messages
        last = _records(thread.path_bodies(leaf, types=_MESSAGES))
    return _End(leaf, last[-1]["message_id"] if last else -1)


def _number(entry: st.Entry) -> int | None:
    record = record_of(entry, FRAMEWORK)
    return None if record is None else int(record["message_id"])


def _no_agent(session_id: str, agent_id: str) -> SessionException:
    return SessionException(f"Agent {agent_id} in session {session_id} does not exist")


def _stored_agent(agent: SessionAgent) -> Values:
    """The metadata of a thread that has the state of an agent."""
    return {FRAMEWORK: as_stored(agent.to_dict(), "the state of an agent")}


def _scope(session_id: str) -> str:
    return thread_id_of(FRAMEWORK, session_id)


def _group(multi_agent_id: str) -> str:
    return f"multi_agent:{multi_agent_id}"


def _key(session_id: str, agent_id: str) -> st.SessionKey:
    return st.SessionKey(channel=FRAMEWORK, peer=session_id, thread=agent_id)


def _thread_id(session_id: str, agent_id: str) -> str:
    return thread_id_of(FRAMEWORK, session_id, agent_id)
