"""The words of sessiontree as immutable records."""

from sessiontree.model import entry, lease, message, record, thread
from sessiontree.model.entry import *  # noqa: F403
from sessiontree.model.lease import *  # noqa: F403
from sessiontree.model.message import *  # noqa: F403
from sessiontree.model.record import *  # noqa: F403
from sessiontree.model.thread import *  # noqa: F403

__all__ = [*entry.__all__, *lease.__all__, *message.__all__, *record.__all__, *thread.__all__]
