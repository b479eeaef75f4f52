"""The one meaning of lists, against a plain sort."""

from hypothesis import given
from hypothesis import strategies as some

import sessiontree as st
from sessiontree.model import Thread, ThreadQuery
from sessiontree.stores.listing import page_of, sort_by_created

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
def test_pages_put_together_are_the_whole_list_newest_first(
    found: list[st.Thread], order: st.ThreadOrder, limit: int
) -> None:
    times = {thread.id: thread.created_ns if order == "created" else thread.updated_ns for thread in found}
    expected = sorted(found, key=lambda thread: (-times[thread.id], thread.id))
    shown: list[st.Thread] = []
    cursor = None
    while True:
        page = page_of(found, ThreadQuery(order=order, limit=limit, cursor=cursor))
        assert len(page) <= limit
        shown += page
        cursor = page.cursor
        if cursor is None:
            break
    assert shown == expected


def test_a_list_without_a_query_and_a_sort_return_everything_they_are_given() -> None:
    threads = [
        Thread(id=f"t{number:02}", tree="t", created_ns=number // 2, updated_ns=-number, is_archived=number % 3 == 0)
        for number in range(120)
    ]
    before = list(threads)
    newest_first = sorted(threads, key=lambda thread: (-thread.created_ns, thread.id))
    assert sort_by_created(threads) == newest_first
    assert sort_by_created(iter(threads)) == newest_first
    assert list(page_of(threads)) == threads
    assert page_of(threads).cursor is None
    assert list(page_of(threads, ThreadQuery(limit=None, order="created"))) == [
        thread for thread in newest_first if not thread.is_archived
    ]
    assert threads == before
    assert (sort_by_created([]), list(page_of([]))) == ([], [])
