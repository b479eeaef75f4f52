"""Durable conversation trees for LLM agents: append, fork, rewind, compact, resume.

>>> import sessiontree as st
>>> with st.open("memory:") as journal:
...     thread = journal.create_thread(title="demo")
...     _ = journal.append(thread.id, st.user("hello"))
...     with journal.turn(thread.id, owner="worker-1") as turn:
...         _ = turn.append(st.assistant("hi"))
...     [message.text for message in journal.context(thread.id).messages]
['hello', 'hi']
"""

from typing import TYPE_CHECKING, Any

from sessiontree import _msgspec as _msgspec  # isort: skip  before anything that loads msgspec

from msgspec import UNSET

from sessiontree.codec import content_hash
from sessiontree.compaction import (
    BranchResult,
    CompactionPolicy,
    CompactionResult,
    Summarizer,
    Summary,
    SummaryRequest,
    ratio_policy,
)
from sessiontree.context import Context, Segment, build_context
from sessiontree.copying import CopyReport, copy_store
from sessiontree.errors import (
    ActiveTurnError,
    ClaimLostError,
    CommitUnknownError,
    CompactionClaimedError,
    ConflictError,
    ContextOverflowError,
    CopyMismatchError,
    DamagedDataError,
    DuplicateEntryError,
    EmptySummaryError,
    EntryNotFoundError,
    FencedError,
    ForeignStoreError,
    InvalidInputError,
    InvalidMoveError,
    InvalidParentError,
    MissingExtraError,
    NetworkFileSystemError,
    NewerFormatError,
    NoCheckpointError,
    NotFoundError,
    NothingToRedoError,
    NothingToRetryError,
    NothingToUncompactError,
    NothingToUndoError,
    SessionNotFoundError,
    SessionTreeError,
    StaleLeafError,
    StaleVersionError,
    StoreAccessError,
    StoreClosedError,
    StoreError,
    StoreFullError,
    StorePoisonedError,
    StoreReadOnlyError,
    StoreUnavailableError,
    StoreUrlError,
    SummaryError,
    ThreadExistsError,
    ThreadNotFoundError,
    TruncatedSummaryError,
)
from sessiontree.journal import Journal
from sessiontree.messages import assistant, call, system, tool_result, user
from sessiontree.model import (
    ActiveToolsChange,
    ArtifactRef,
    AssistantMessage,
    BranchSummary,
    Checkpoint,
    Compaction,
    CompactionClaim,
    ContextUsage,
    Custom,
    Entry,
    Event,
    FilePart,
    ImagePart,
    Label,
    Lease,
    Memory,
    Message,
    MessagePayload,
    ModelChange,
    Move,
    MoveReason,
    OpaquePart,
    Page,
    Part,
    Payload,
    ReasoningPart,
    Record,
    ResultView,
    Role,
    RunFailure,
    SessionKey,
    SystemMessage,
    TextPart,
    Thread,
    ThreadFields,
    ThreadFilters,
    ThreadInfo,
    ThreadOrder,
    ThreadQuery,
    ToolCallMessage,
    ToolCallPart,
    ToolResultMessage,
    ToolResultPart,
    TurnMarker,
    TurnStatus,
    UnknownPayload,
    Usage,
    UsageReport,
    UserMessage,
    entry_type,
)
from sessiontree.opening import open, open_async  # noqa: A004  `st.open` reads as what it does
from sessiontree.operations.entries import NewEntry
from sessiontree.operations.turns import Resumption
from sessiontree.queries import Finding, StoreStats
from sessiontree.summarizers.extractive import extractive
from sessiontree.tokens import estimate_message, estimate_text, exact_counter

if TYPE_CHECKING:
    from sessiontree.async_journal import AsyncJournal

__version__ = "0.1.0"

__all__ = [
    "UNSET",
    "ActiveToolsChange",
    "ActiveTurnError",
    "ArtifactRef",
    "AssistantMessage",
    "AsyncJournal",
    "BranchResult",
    "BranchSummary",
    "Checkpoint",
    "ClaimLostError",
    "CommitUnknownError",
    "Compaction",
    "CompactionClaim",
    "CompactionClaimedError",
    "CompactionPolicy",
    "CompactionResult",
    "ConflictError",
    "Context",
    "ContextOverflowError",
    "ContextUsage",
    "CopyMismatchError",
    "CopyReport",
    "Custom",
    "DamagedDataError",
    "DuplicateEntryError",
    "EmptySummaryError",
    "Entry",
    "EntryNotFoundError",
    "Event",
    "FencedError",
    "FilePart",
    "Finding",
    "ForeignStoreError",
    "ImagePart",
    "InvalidInputError",
    "InvalidMoveError",
    "InvalidParentError",
    "Journal",
    "Label",
    "Lease",
    "Memory",
    "Message",
    "MessagePayload",
    "MissingExtraError",
    "ModelChange",
    "Move",
    "MoveReason",
    "NetworkFileSystemError",
    "NewEntry",
    "NewerFormatError",
    "NoCheckpointError",
    "NotFoundError",
    "NothingToRedoError",
    "NothingToRetryError",
    "NothingToUncompactError",
    "NothingToUndoError",
    "OpaquePart",
    "Page",
    "Part",
    "Payload",
    "ReasoningPart",
    "Record",
    "ResultView",
    "Resumption",
    "Role",
    "RunFailure",
    "Segment",
    "SessionKey",
    "SessionNotFoundError",
    "SessionTreeError",
    "StaleLeafError",
    "StaleVersionError",
    "StoreAccessError",
    "StoreClosedError",
    "StoreError",
    "StoreFullError",
    "StorePoisonedError",
    "StoreReadOnlyError",
    "StoreStats",
    "StoreUnavailableError",
    "StoreUrlError",
    "Summarizer",
    "Summary",
    "SummaryError",
    "SummaryRequest",
    "SystemMessage",
    "TextPart",
    "Thread",
    "ThreadExistsError",
    "ThreadFields",
    "ThreadFilters",
    "ThreadInfo",
    "ThreadNotFoundError",
    "ThreadOrder",
    "ThreadQuery",
    "ToolCallMessage",
    "ToolCallPart",
    "ToolResultMessage",
    "ToolResultPart",
    "TruncatedSummaryError",
    "TurnMarker",
    "TurnStatus",
    "UnknownPayload",
    "Usage",
    "UsageReport",
    "UserMessage",
    "assistant",
    "build_context",
    "call",
    "content_hash",
    "copy_store",
    "entry_type",
    "estimate_message",
    "estimate_text",
    "exact_counter",
    "extractive",
    "open",
    "open_async",
    "ratio_policy",
    "system",
    "tool_result",
    "user",
]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """AsyncJournal on first use: asyncio costs more to import than everything else together."""
        if name == "AsyncJournal":
            from sessiontree.async_journal import AsyncJournal  # noqa: PLC0415

            return AsyncJournal
        raise AttributeError(f"module 'sessiontree' has no attribute {name!r}")
