"""The outside services of a soak, each behind a proxy, and what they have to offer: it grows while the soak runs."""

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from support import git_oracle
from support.git_histories import lines, straight
from support.proxy import Proxy
from tsuzuki.collectors.books.sandbox.google_books import GoogleBooks, Volume, volumes
from tsuzuki.collectors.books.sandbox.smtp import MailServer
from tsuzuki.collectors.commits.sandbox.gitlab import TOKEN as GITLAB_TOKEN
from tsuzuki.collectors.commits.sandbox.gitlab import gitlab
from tsuzuki.collectors.commits.sandbox.gitlab.repository_builder import RepositoryBuilder
from tsuzuki.collectors.feeds.sandbox.feed_site import Article, ArticlePage, Feed, FeedSite
from tsuzuki.collectors.feeds.sandbox.gemini import KEY, Gemini
from tsuzuki.collectors.feeds.sandbox.mastodon import TOKEN as MASTODON_TOKEN
from tsuzuki.collectors.feeds.sandbox.mastodon import Mastodon, mastodon
from tsuzuki.sandbox.server import StandIn

FEEDS = ("/city.xml", "/works.xml")
PROJECTS = ("engine", "site", "tools")
COMMITS_FIRST = 15
PAGE_SIZE = 40
SOURCE_FILES = 12
ARTICLES, PUSHES, EDITS = 0.25, 0.3, 0.3
"""Of one step. No more than is worked off meanwhile: what is left over is worked off without faults."""
REMOVALS = 0.1
"""Of all edits."""

FILE = """\
commits:
  gitlab: {{url: "http://127.0.0.1:{gitlab}", token: "${{SOAK:-{gitlab_token}}}"}}
  request_timeout: 2s
books:
  base_url: "http://127.0.0.1:{books}/books/v1"
  api_key: "${{SOAK:-any}}"
  daily_limit: {daily_limit}
  mail: {{host: 127.0.0.1, port: {mail}, encryption: none, from: a@example.org, to: b@example.org}}
feeds:
  private_hosts: [127.0.0.1]
  request_timeout: 2s
  models:
    default:
      {{provider: gemini, base_url: "http://127.0.0.1:{gemini}", api_key: "${{SOAK:-{gemini_key}}}", timeout: 2s}}
  accounts:
    default:
      type: mastodon
      base_url: "http://127.0.0.1:{mastodon}"
      access_token: "${{SOAK:-{mastodon_token}}}"
      timeout: 2s
      settling_time: 2s
jobs:
  commits: {{type: commits, schedule: every 2s}}
  books: {{type: books, schedule: every 1s, queries: [python], max_per_run: 40, mail_limit: 40}}
  code: {{type: codeindex, schedule: every 2s, roots: [tree]}}
  bot:
    type: feeds
    schedule: every 1s
    items_per_run: 5
    retry_limit: 1000
    retry_backoff: 1s
    retry_backoff_cap: 2s
    feeds:
      city: {{url: "http://127.0.0.1:{feeds}/city.xml", backfill: all, caps: {caps}}}
      works: {{url: "http://127.0.0.1:{feeds}/works.xml", backfill: all, caps: {caps}}}
"""
NO_CAPS = "{per_run: null, per_hour: null, per_day: null}"


@dataclass(frozen=True, kw_only=True)
class Outside:
    """What is served so far, and the proxies through which it is reached."""

    proxies: dict[str, Proxy]
    site: FeedSite
    mastodon: Mastodon
    gemini: Gemini
    servers: dict[str, StandIn]
    mail: MailServer
    catalogue: list[Volume]
    repositories: dict[str, RepositoryBuilder]
    tree: Path
    chance: random.Random
    made: dict[str, int] = field(default_factory=lambda: {"article": 0, "commit": 0, "edit": 0})

    def grow(self) -> None:
        """One step: an article, a push, an edit of a file, or none of them."""
        self.mastodon.store_pending()
        if self.chance.random() < ARTICLES:
            self.publish()
        if self.chance.random() < PUSHES:
            self._push()
        if self.chance.random() < EDITS:
            self._edit()

    def configuration(self, *, daily_limit: int) -> str:
        """`tsuzuki.yaml` of both nodes. `daily_limit`: so many calls for books."""
        return FILE.format(
            **{name: proxy.port for name, proxy in self.proxies.items()},
            daily_limit=daily_limit,
            gitlab_token=GITLAB_TOKEN,
            gemini_key=KEY,
            mastodon_token=MASTODON_TOKEN,
            caps=NO_CAPS,
        )

    def articles(self) -> list[Article]:
        return [article for path in FEEDS for article in self.site.articles(path)]

    def publish(self) -> None:
        self.made["article"] += 1
        title = f"Bridge {self.made['article']} opens"
        body = f"{title}. The mayor came, and so did many people.".encode()
        # Plain text needs no process that reads documents; one in twenty does.
        plain = ArticlePage(body=body, content_type="text/plain")
        page = plain if self.chance.random() < 0.95 else ArticlePage()
        article = Article(title=title, text=body.decode(), page=page)
        self.site.add_article(self.chance.choice(FEEDS), article)

    def _push(self) -> None:
        make = self.repositories[self.chance.choice(PROJECTS)]
        for _ in range(self.chance.randrange(1, 4)):
            self.made["commit"] += 1
            number = self.made["commit"]
            name = f"new{self.chance.randrange(12)}.txt"
            make.commit("main", {name: lines(number % 20 + 1, f"{number}")}, at=1_700_000_000)
        make.write()
        git_oracle.rows(
            make.folder, "main"
        )  # each commit is asked for once: not all of them in the end

    def _edit(self) -> None:
        self.made["edit"] += 1
        number = self.chance.randrange(SOURCE_FILES)
        if self.chance.random() < REMOVALS:
            source_file(self.tree, number).unlink(missing_ok=True)
        else:
            write_source(self.tree, number, self.made["edit"])


def source_file(tree: Path, number: int) -> Path:
    return tree / f"part_{number}.py"


def write_source(tree: Path, number: int, edit: int) -> None:
    body = f"def function_{number}_{edit}(value):\n    return value + {edit}\n\n\n"
    source_file(tree, number).write_text(body * (1 + edit % 3), encoding="utf-8")


@contextmanager
def outside(folder: Path, chance: random.Random, *, pages: int) -> Iterator[Outside]:
    """Every service on a port of its own, with something to collect from the start."""
    repositories = {
        name: straight(folder / "repositories" / "group" / f"{name}.git", COMMITS_FIRST, seed=seed)
        for seed, name in enumerate(PROJECTS)
    }
    tree = folder / "workspace" / "tree"
    tree.mkdir(parents=True)
    for number in range(SOURCE_FILES):
        write_source(tree, number, 0)
    site, catalogue = FeedSite(), volumes(PAGE_SIZE * pages)
    for path in FEEDS:
        site.add_feed(Feed(path=path, title=path))
    applications = {
        "gitlab": gitlab(folder / "repositories"),
        "books": GoogleBooks(catalogue=catalogue),
        "feeds": site,
        "gemini": Gemini(),
        "mastodon": mastodon(),
    }
    with ExitStack() as stack:
        mail = stack.enter_context(MailServer())
        servers = {
            name: stack.enter_context(StandIn(application))
            for name, application in applications.items()
        }
        ports = {name: int(server.url.rsplit(":", 1)[1]) for name, server in servers.items()}
        proxies = {
            name: stack.enter_context(Proxy(port))
            for name, port in {**ports, "mail": mail.port}.items()
        }
        yield Outside(
            proxies=proxies,
            site=site,
            mastodon=applications["mastodon"],
            gemini=applications["gemini"],
            servers=servers,
            mail=mail,
            catalogue=catalogue,
            repositories=repositories,
            tree=tree,
            chance=chance,
        )
