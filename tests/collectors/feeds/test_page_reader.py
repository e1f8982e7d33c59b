"""The pages of a run's items, as a feed lists them."""

from tsuzuki.collectors.feeds.items import ItemReason, ItemStatus
from tsuzuki.sandbox.feed_site import Media

from .feeds_fixture import FeedsFixture


def test_the_picture_of_an_entry_is_no_file_to_be_read(feeds_fixture: FeedsFixture) -> None:
    feeds_fixture.add(media=(Media(url="/bridge.png", description="A bridge"),))
    feeds_fixture.work()
    assert feeds_fixture.item() == (ItemStatus.PROCESSED, ItemReason.NONE, 0)
    (path,) = [
        s.request.path for s in feeds_fixture.server.requests if "articles" in s.request.path
    ]
    assert path.startswith("/articles/")


def test_a_page_shorter_than_its_link_is_judged_by_its_text(feeds_fixture: FeedsFixture) -> None:
    feeds_fixture.add(title="Personnel", text="New personnel.", path="/" + "a" * 100)
    feeds_fixture.work()
    assert feeds_fixture.item() == (ItemStatus.DEFERRED, ItemReason.NOT_VALUABLE, 1)
