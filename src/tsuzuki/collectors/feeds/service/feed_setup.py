"""What the section `feeds` must say before the items of a feed can be posted."""

from collections.abc import Iterable, Iterator

from tsuzuki.collectors.feeds.options import FeedOptions, FeedsSection, Provider
from tsuzuki.model.sentence import CommandLine, Sentence
from tsuzuki.model.suggestion import closest


def missing_settings(section: FeedsSection, options: FeedOptions) -> Iterator[Sentence]:
    """A sentence for each setting that a run would stop at, with what to write."""
    model, account = options.model, options.account
    if model not in section.models:
        yield Sentence(
            "Model %(name)s is not configured. %(guess)sAdd it to the `feeds` section: %(line)s",
            name=repr(model),
            guess=_guess(model, section.models),
            line=CommandLine(f"models: {{{model}: {{provider: gemini, api_key: '${{NAME}}'}}}}"),
        )
    if account not in section.accounts:
        mastodon = "{type: mastodon, base_url: 'https://…', access_token: '${NAME}'}"
        yield Sentence(
            "Account %(name)s is not configured, so nothing can be posted. %(guess)sAdd it to the `feeds` "
            "section: %(line)s, or %(other)s",
            name=repr(account),
            guess=_guess(account, section.accounts),
            line=CommandLine(f"accounts: {{{account}: {mastodon}}}"),
            other=CommandLine(f"accounts: {{{account}: {{type: file, path: posts.jsonl}}}}"),
        )
    if options.request is not None and options.request not in section.requests:
        yield Sentence(
            "Request settings %(name)s are not configured. %(guess)sAdd them under `requests:` in the `feeds` section.",
            name=repr(options.request),
            guess=_guess(options.request, section.requests),
        )


def notes_for(section: FeedsSection, options: FeedOptions) -> Iterator[Sentence]:
    """What a person who has just added a feed wants to know."""
    model = section.models.get(options.model)
    if model is not None and model.provider is Provider.EXTRACTIVE:
        yield Sentence(
            "The model %(name)s is extractive: it accepts every article and uses its first sentences as the summary.",
            name=repr(options.model),
        )
    if options.backfill == 0:
        yield Sentence(
            "Only articles published from now on are posted, not those already in the feed (`backfill`)."
        )


def _guess(name: str, known: Iterable[str]) -> str:
    similar = closest(name, known)
    return Sentence('Did you mean "%(name)s"? ', name=similar) if similar else ""
