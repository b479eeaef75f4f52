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

from importlib import import_module
from threading import RLock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msgspec import UNSET as UNSET

    from sessiontree.compaction import BranchResult as BranchResult
    from sessiontree.compaction import CompactionPolicy as CompactionPolicy
    from sessiontree.compaction import CompactionResult as CompactionResult
    from sessiontree.compaction import Summarizer as Summarizer
    from sessiontree.compaction import Summary as Summary
    from sessiontree.compaction import SummaryRequest as SummaryRequest
    from sessiontree.compaction import ratio_policy as ratio_policy
    from sessiontree.compaction.summarizers.extractive import extractive as extractive
    from sessiontree.context import Context as Context
    from sessiontree.context import Segment as Segment
    from sessiontree.context import build_context as build_context
    from sessiontree.context.dialects import DIALECTS as DIALECTS
    from sessiontree.errors import ActiveTurnError as ActiveTurnError
    from sessiontree.errors import AnswerInterruptedError as AnswerInterruptedError
    from sessiontree.errors import BackupError as BackupError
    from sessiontree.errors import BlobNotFoundError as BlobNotFoundError
    from sessiontree.errors import ClaimLostError as ClaimLostError
    from sessiontree.errors import CommitUnknownError as CommitUnknownError
    from sessiontree.errors import CompactionClaimedError as CompactionClaimedError
    from sessiontree.errors import ConflictError as ConflictError
    from sessiontree.errors import ContextOverflowError as ContextOverflowError
    from sessiontree.errors import CopyMismatchError as CopyMismatchError
    from sessiontree.errors import DamagedDataError as DamagedDataError
    from sessiontree.errors import DuplicateEntryError as DuplicateEntryError
    from sessiontree.errors import EmptySummaryError as EmptySummaryError
    from sessiontree.errors import EntryNotFoundError as EntryNotFoundError
    from sessiontree.errors import FencedError as FencedError
    from sessiontree.errors import FolderChangedError as FolderChangedError
    from sessiontree.errors import ForeignStoreError as ForeignStoreError
    from sessiontree.errors import InvalidInputError as InvalidInputError
    from sessiontree.errors import InvalidParentError as InvalidParentError
    from sessiontree.errors import InvalidTransitionError as InvalidTransitionError
    from sessiontree.errors import MissingBlobsError as MissingBlobsError
    from sessiontree.errors import MissingExtraError as MissingExtraError
    from sessiontree.errors import NetworkFileSystemError as NetworkFileSystemError
    from sessiontree.errors import NewerFormatError as NewerFormatError
    from sessiontree.errors import NoCheckpointError as NoCheckpointError
    from sessiontree.errors import NotFoundError as NotFoundError
    from sessiontree.errors import NothingToRedoError as NothingToRedoError
    from sessiontree.errors import NothingToRetryError as NothingToRetryError
    from sessiontree.errors import NothingToUncompactError as NothingToUncompactError
    from sessiontree.errors import NothingToUndoError as NothingToUndoError
    from sessiontree.errors import OversizedSummaryError as OversizedSummaryError
    from sessiontree.errors import PendingRestoreError as PendingRestoreError
    from sessiontree.errors import RestoreConflictError as RestoreConflictError
    from sessiontree.errors import SessionNotArchivedError as SessionNotArchivedError
    from sessiontree.errors import SessionNotFoundError as SessionNotFoundError
    from sessiontree.errors import SessionTreeError as SessionTreeError
    from sessiontree.errors import StaleDocumentError as StaleDocumentError
    from sessiontree.errors import StaleLeafError as StaleLeafError
    from sessiontree.errors import StaleVersionError as StaleVersionError
    from sessiontree.errors import StoreAccessError as StoreAccessError
    from sessiontree.errors import StoreClosedError as StoreClosedError
    from sessiontree.errors import StoreError as StoreError
    from sessiontree.errors import StoreFullError as StoreFullError
    from sessiontree.errors import StoreGoneError as StoreGoneError
    from sessiontree.errors import StorePoisonedError as StorePoisonedError
    from sessiontree.errors import StoreReadOnlyError as StoreReadOnlyError
    from sessiontree.errors import StoreUnavailableError as StoreUnavailableError
    from sessiontree.errors import StoreUrlError as StoreUrlError
    from sessiontree.errors import SummaryError as SummaryError
    from sessiontree.errors import ThreadArchivedError as ThreadArchivedError
    from sessiontree.errors import ThreadChangedError as ThreadChangedError
    from sessiontree.errors import ThreadExistsError as ThreadExistsError
    from sessiontree.errors import ThreadNotFoundError as ThreadNotFoundError
    from sessiontree.errors import TruncatedSummaryError as TruncatedSummaryError
    from sessiontree.errors import UnsafePathError as UnsafePathError
    from sessiontree.errors import WorkspaceError as WorkspaceError
    from sessiontree.journal import Draft as Draft
    from sessiontree.journal import Journal as Journal
    from sessiontree.journal import NewEntry as NewEntry
    from sessiontree.journal import PositionedDraft as PositionedDraft
    from sessiontree.journal import make_draft as make_draft
    from sessiontree.journal.backups import Backup as Backup
    from sessiontree.journal.backups import list_backups as list_backups
    from sessiontree.journal.backups import verify_backup as verify_backup
    from sessiontree.journal.handle import ThreadHandle as ThreadHandle
    from sessiontree.journal.handle_async import AsyncThreadHandle as AsyncThreadHandle
    from sessiontree.journal.journal_async import AsyncJournal as AsyncJournal
    from sessiontree.journal.opening import open as open  # noqa: A004  st.open reads as what it does
    from sessiontree.journal.opening_async import open_async as open_async
    from sessiontree.journal.operations.changes import Changes as Changes
    from sessiontree.journal.operations.costs import CostReport as CostReport
    from sessiontree.journal.operations.turns import Resumption as Resumption
    from sessiontree.journal.stream import AnswerStream as AnswerStream
    from sessiontree.journal.stream_async import AsyncAnswerStream as AsyncAnswerStream
    from sessiontree.model import ActiveToolsChange as ActiveToolsChange
    from sessiontree.model import ArtifactRef as ArtifactRef
    from sessiontree.model import AssistantMessage as AssistantMessage
    from sessiontree.model import BranchSummary as BranchSummary
    from sessiontree.model import Checkpoint as Checkpoint
    from sessiontree.model import CheckpointMoment as CheckpointMoment
    from sessiontree.model import Compaction as Compaction
    from sessiontree.model import CompactionClaim as CompactionClaim
    from sessiontree.model import ContextUsage as ContextUsage
    from sessiontree.model import Custom as Custom
    from sessiontree.model import Entry as Entry
    from sessiontree.model import Event as Event
    from sessiontree.model import FilePart as FilePart
    from sessiontree.model import ImagePart as ImagePart
    from sessiontree.model import Label as Label
    from sessiontree.model import Lease as Lease
    from sessiontree.model import Memory as Memory
    from sessiontree.model import Message as Message
    from sessiontree.model import MessagePayload as MessagePayload
    from sessiontree.model import ModelChange as ModelChange
    from sessiontree.model import Move as Move
    from sessiontree.model import MoveReason as MoveReason
    from sessiontree.model import NextMove as NextMove
    from sessiontree.model import OpaquePart as OpaquePart
    from sessiontree.model import Page as Page
    from sessiontree.model import Part as Part
    from sessiontree.model import Payload as Payload
    from sessiontree.model import Queued as Queued
    from sessiontree.model import QueuedMessage as QueuedMessage
    from sessiontree.model import ReasoningPart as ReasoningPart
    from sessiontree.model import Record as Record
    from sessiontree.model import ResultCut as ResultCut
    from sessiontree.model import ResultView as ResultView
    from sessiontree.model import Role as Role
    from sessiontree.model import RunFailure as RunFailure
    from sessiontree.model import SessionKey as SessionKey
    from sessiontree.model import SystemMessage as SystemMessage
    from sessiontree.model import TextPart as TextPart
    from sessiontree.model import Thread as Thread
    from sessiontree.model import ThreadFields as ThreadFields
    from sessiontree.model import ThreadFilters as ThreadFilters
    from sessiontree.model import ThreadInfo as ThreadInfo
    from sessiontree.model import ThreadOrder as ThreadOrder
    from sessiontree.model import ThreadQuery as ThreadQuery
    from sessiontree.model import ToolCallMessage as ToolCallMessage
    from sessiontree.model import ToolCallPart as ToolCallPart
    from sessiontree.model import ToolResultMessage as ToolResultMessage
    from sessiontree.model import ToolResultPart as ToolResultPart
    from sessiontree.model import TurnMarker as TurnMarker
    from sessiontree.model import TurnStatus as TurnStatus
    from sessiontree.model import UnknownPayload as UnknownPayload
    from sessiontree.model import Usage as Usage
    from sessiontree.model import UsageReport as UsageReport
    from sessiontree.model import UserMessage as UserMessage
    from sessiontree.model import entry_type as entry_type
    from sessiontree.model.builders import assistant as assistant
    from sessiontree.model.builders import call as call
    from sessiontree.model.builders import system as system
    from sessiontree.model.builders import tool_result as tool_result
    from sessiontree.model.builders import user as user
    from sessiontree.model.codec import EntryBody as EntryBody
    from sessiontree.model.codec import content_hash as content_hash
    from sessiontree.model.documents import Document as Document
    from sessiontree.model.prices import PRICES as PRICES
    from sessiontree.model.prices import Cost as Cost
    from sessiontree.model.prices import Price as Price
    from sessiontree.model.retention import Expired as Expired
    from sessiontree.model.retention import Retention as Retention
    from sessiontree.model.retention import RetentionReport as RetentionReport
    from sessiontree.model.tokens import estimate_message as estimate_message
    from sessiontree.model.tokens import estimate_text as estimate_text
    from sessiontree.model.tokens import exact_counter as exact_counter
    from sessiontree.search import Hit as Hit
    from sessiontree.search import SearchPage as SearchPage
    from sessiontree.search import Snippet as Snippet
    from sessiontree.sessions.checkpointed import CheckpointedSessions as CheckpointedSessions
    from sessiontree.sessions.checkpointed_async import AsyncCheckpointedSessions as AsyncCheckpointedSessions
    from sessiontree.sessions.manager import SessionManager as SessionManager
    from sessiontree.sessions.manager_async import AsyncSessionManager as AsyncSessionManager
    from sessiontree.sessions.simple_store import SimpleStore as SimpleStore
    from sessiontree.sessions.simple_store_async import AsyncSimpleStore as AsyncSimpleStore
    from sessiontree.stores.backup.manifest import BackupReport as BackupReport
    from sessiontree.stores.queries import Finding as Finding
    from sessiontree.stores.queries import StoreStats as StoreStats
    from sessiontree.transfer import CopyReport as CopyReport
    from sessiontree.transfer import ExportReport as ExportReport
    from sessiontree.transfer import ImportNote as ImportNote
    from sessiontree.transfer import ImportReport as ImportReport
    from sessiontree.transfer import RestoreReport as RestoreReport
    from sessiontree.transfer import copy_store as copy_store
    from sessiontree.transfer import export_sessions as export_sessions
    from sessiontree.transfer import import_sessions as import_sessions
    from sessiontree.transfer import restore_backup as restore_backup
    from sessiontree.workspace.location import workspace_path as workspace_path

__version__ = "0.1.0"

_NAMES = {
    "msgspec": "UNSET",
    "sessiontree.compaction": """
        BranchResult CompactionPolicy CompactionResult Summarizer Summary SummaryRequest ratio_policy
    """,
    "sessiontree.compaction.summarizers.extractive": "extractive",
    "sessiontree.context": "Context Segment build_context",
    "sessiontree.context.dialects": "DIALECTS",
    "sessiontree.errors": """
        ActiveTurnError AnswerInterruptedError BackupError BlobNotFoundError ClaimLostError CommitUnknownError CompactionClaimedError ConflictError
        ContextOverflowError CopyMismatchError DamagedDataError DuplicateEntryError EmptySummaryError
        EntryNotFoundError FencedError FolderChangedError ForeignStoreError InvalidInputError InvalidParentError
        InvalidTransitionError MissingBlobsError MissingExtraError NetworkFileSystemError NewerFormatError
        NoCheckpointError NotFoundError NothingToRedoError NothingToRetryError NothingToUncompactError
        NothingToUndoError OversizedSummaryError PendingRestoreError RestoreConflictError SessionNotArchivedError
        SessionNotFoundError SessionTreeError StaleDocumentError StaleLeafError StaleVersionError StoreAccessError StoreClosedError
        StoreError StoreFullError StoreGoneError StorePoisonedError StoreReadOnlyError StoreUnavailableError
        StoreUrlError SummaryError ThreadArchivedError ThreadChangedError ThreadExistsError ThreadNotFoundError
        TruncatedSummaryError UnsafePathError WorkspaceError
    """,
    "sessiontree.journal": "Draft Journal NewEntry PositionedDraft make_draft",
    "sessiontree.journal.backups": "Backup list_backups verify_backup",
    "sessiontree.journal.handle": "ThreadHandle",
    "sessiontree.journal.handle_async": "AsyncThreadHandle",
    "sessiontree.journal.journal_async": "AsyncJournal",
    "sessiontree.journal.opening": "open",
    "sessiontree.journal.opening_async": "open_async",
    "sessiontree.journal.operations.changes": "Changes",
    "sessiontree.journal.operations.costs": "CostReport",
    "sessiontree.journal.operations.turns": "Resumption",
    "sessiontree.journal.stream": "AnswerStream",
    "sessiontree.journal.stream_async": "AsyncAnswerStream",
    "sessiontree.model": """
        ActiveToolsChange ArtifactRef AssistantMessage BranchSummary Checkpoint CheckpointMoment Compaction
        CompactionClaim ContextUsage Custom Entry Event FilePart ImagePart Label Lease Memory Message MessagePayload
        ModelChange Move MoveReason NextMove OpaquePart Page Part Payload Queued QueuedMessage ReasoningPart Record ResultCut ResultView Role RunFailure
        SessionKey SystemMessage TextPart Thread ThreadFields ThreadFilters ThreadInfo ThreadOrder ThreadQuery
        ToolCallMessage ToolCallPart ToolResultMessage ToolResultPart TurnMarker TurnStatus UnknownPayload Usage
        UsageReport UserMessage entry_type
    """,
    "sessiontree.model.builders": "assistant call system tool_result user",
    "sessiontree.model.codec": "EntryBody content_hash",
    "sessiontree.model.documents": "Document",
    "sessiontree.model.prices": "PRICES Cost Price",
    "sessiontree.model.retention": "Expired Retention RetentionReport",
    "sessiontree.model.tokens": "estimate_message estimate_text exact_counter",
    "sessiontree.search": "Hit SearchPage Snippet",
    "sessiontree.sessions.checkpointed": "CheckpointedSessions",
    "sessiontree.sessions.checkpointed_async": "AsyncCheckpointedSessions",
    "sessiontree.sessions.manager": "SessionManager",
    "sessiontree.sessions.manager_async": "AsyncSessionManager",
    "sessiontree.sessions.simple_store": "SimpleStore",
    "sessiontree.sessions.simple_store_async": "AsyncSimpleStore",
    "sessiontree.stores.backup.manifest": "BackupReport",
    "sessiontree.stores.queries": "Finding StoreStats",
    "sessiontree.transfer": """
        CopyReport ExportReport ImportNote ImportReport RestoreReport copy_store export_sessions import_sessions
        restore_backup
    """,
    "sessiontree.workspace.location": "workspace_path",
}
"""Public names by module. A name is imported on first use: a program loads only what it needs."""

_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [*sorted(_MODULE_OF)]

_LOADING = RLock()
"""One thread loads at a time: one that loads a package and one that loads a module of it would wait for each other."""

if not TYPE_CHECKING:  # type checkers use the imports above

    def __getattr__(name: str) -> Any:
        """Import a public name on first use."""
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        with _LOADING:
            value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
        return value

    def __dir__() -> list[str]:
        return __all__
