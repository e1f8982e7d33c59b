"""Verification of feeds: every post that is recorded as sent is on its account, once, and every post of an article
that the account has is recorded.

An account is asked for its own posts. What else it has, such as posts that a person wrote, is counted in a note.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import datetime
from itertools import islice

from tsuzuki.collectors.feeds.channels.factory import open_channel
from tsuzuki.collectors.feeds.channels.protocol import LookUpImpossible, OwnPost
from tsuzuki.collectors.feeds.options import AccountSettings, FeedsSection
from tsuzuki.collectors.feeds.queries import sent_posts
from tsuzuki.collectors.feeds.queries.sent_posts import PostedArticle, SentPost
from tsuzuki.model.errors import TsuzukiError
from tsuzuki.model.verification import Comparison, FaultKind, Verified
from tsuzuki.outward.outbox import OutboxState
from tsuzuki.wiring.collector import VerifyContext

POSTS_MAX = 20_000
"""Of one account; the newest are compared."""

PAGE = 40


def verify(context: VerifyContext) -> Iterator[Verified]:
    """One subject for each account that was posted to."""
    with context.database.read() as connection:
        accounts = sent_posts.accounts(connection, since=context.since)
    if not accounts:
        return
    section = context.section(FeedsSection)
    for account in accounts:
        comparison = _AccountComparison(context, account)
        settings = section.accounts.get(account)
        if settings is None:
            yield comparison.result(note="not compared: the account is no longer configured")
            continue
        try:
            yield comparison.compare(settings)
        except LookUpImpossible as impossible:
            yield comparison.result(note=f"not compared: {impossible.message}")
        except TsuzukiError as error:
            yield comparison.result(problem=error.message)


class _AccountComparison(Comparison):
    """Compares one account. What is recorded is read first: what is posted meanwhile is looked up with its article."""

    def __init__(self, context: VerifyContext, account: str) -> None:
        super().__init__(account)
        self._context = context
        self._account = account
        self._absent: dict[str, list[SentPost]] = {}
        """Recorded posts that were not found on the account so far, by remote id."""
        self._found_by_link: set[str] = set()
        """Links of posts on the account that are recorded without their id."""
        self._others = 0

    def compare(self, settings: AccountSettings) -> Verified:
        since, is_cut = self._read_recorded()
        channel = open_channel(
            settings,
            account=self._account,
            clock=self._context.database.clock,
            workspace=self._context.workspace,
        )
        with closing(channel):
            own = channel.own_posts(since=since)
            while page := list(islice(own, PAGE)):
                self._compare_page(page)
        for recorded in self._absent.values():
            for post in recorded:
                if post.has_remote_id or post.url not in self._found_by_link:
                    name = f"post {post.id} ({post.url}) is not on the account"
                    self.add(FaultKind.UNKNOWN, name)
        return self.result(note=self._note(since, is_cut=is_cut))

    def _read_recorded(self) -> tuple[datetime, bool]:
        """From when on posts are compared, and whether there are older ones."""
        with self._context.database.read() as connection:
            found = sent_posts.find(
                connection, self._account, since=self._context.since, limit=POSTS_MAX + 1
            )
        for post in found[:POSTS_MAX]:
            self._absent.setdefault(post.remote_id or post.key, []).append(post)
        is_cut = len(found) > POSTS_MAX
        return (found[POSTS_MAX - 1].created_at if is_cut else self._context.since), is_cut

    def _compare_page(self, page: Sequence[OwnPost]) -> None:
        unknown = [post for post in page if self._absent.pop(post.remote_id, None) is None]
        self._judge(unknown)
        self.compared += len(page)
        self._context.advance(len(page))

    def _judge(self, unknown: Sequence[OwnPost]) -> None:
        links = {link for post in unknown for link in post.links}
        with self._context.database.read() as connection:
            articles = {one.url: one for one in sent_posts.articles(connection, links)}
        for post in unknown:
            article = next((articles[link] for link in post.links if link in articles), None)
            if article is None:
                self._others += 1
            else:
                self._judge_post(post, article)

    def _judge_post(self, post: OwnPost, article: PostedArticle) -> None:
        """A post of an article that is not recorded under its id."""
        if article.state in (OutboxState.SENDING, OutboxState.UNSETTLED):
            return  # a run finds out whether this is it
        if article.account not in (None, self._account):
            self._others += 1
        elif article.state is not OutboxState.SENT:
            name = f"post {post.remote_id} on the account ({article.url}) is not recorded as sent"
            self.add(FaultKind.MISSING, name)
        elif not article.has_remote_id and article.url not in self._found_by_link:
            self._found_by_link.add(article.url)
        elif article.remote_id != post.remote_id:  # else it was posted meanwhile
            name = f"post {post.remote_id} on the account ({article.url}) is a duplicate"
            self.add(FaultKind.REPEATED, name)

    def _note(self, since: datetime, *, is_cut: bool) -> str | None:
        notes = []
        if is_cut:
            notes.append(f"posts before {since:%Y-%m-%d %H:%M} UTC are not compared")
        if self._others:
            notes.append(f"{self._others:,} other posts on the account")
        return "; ".join(notes) or None
