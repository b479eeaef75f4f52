"""The one meaning of lists, against a plain sort."""

from hypothesis import given
from hypothesis import strategies as some

from sessiontree.model import Thread, ThreadQuery
from sessiontree.stores.listing import page_of

threads = some.lists(
    some.builds(
        lambda name, created, updated: Thread(id=name, tree=name, created_ns=created, updated_ns=updated),
        some.text(max_size=3),
        some.integers(-2, 2),
        some.integers(-2, 2),
    ),
    unique_by=lambda thread: thread.id,
    max_size=12,
)


@given(threads, some.sampled_from(["created", "updated"]), some.integers(1, 5))
def test_pages_put_together_are_the_whole_list_newest_first(found, order, limit):
    time = {"created": lambda thread: thread.created_ns, "updated": lambda thread: thread.updated_ns}[order]
    expected = sorted(found, key=lambda thread: (-time(thread), thread.id))
    shown, cursor = [], None
    while True:
        page = page_of(found, ThreadQuery(order=order, limit=limit, cursor=cursor))
        assert len(page) <= limit
        shown += page
        cursor = page.cursor
        if cursor is None:
            break
    assert shown == expected
