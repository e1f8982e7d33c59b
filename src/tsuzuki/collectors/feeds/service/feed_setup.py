"""What the section `feeds` must say before the items of a feed can be posted."""

from collections.abc import Iterator

from tsuzuki.collectors.feeds.options import FeedOptions, FeedsSection, Provider
from tsuzuki.model.suggestion import did_you_mean


def missing_settings(section: FeedsSection, options: FeedOptions) -> Iterator[str]:
    """A sentence for each setting that a run would stop at, with what to write."""
    model, account = options.model, options.account
    if model not in section.models:
        yield (
            f"There is no model {model!r}. {did_you_mean(model, section.models)}Write into the section `feeds`: "
            f"models: {{{model}: {{provider: gemini, api_key: '${{NAME}}'}}}}"
        )
    if account not in section.accounts:
        yield (
            f"There is no account {account!r}, so nothing can be posted. "
            f"{did_you_mean(account, section.accounts)}Write into the section `feeds`: "
            f"accounts: {{{account}: {{type: mastodon, base_url: 'https://…', access_token: '${{NAME}}'}}}}, or "
            f"accounts: {{{account}: {{type: file, path: posts.jsonl}}}}"
        )
    if options.request is not None and options.request not in section.requests:
        yield (
            f"There are no request settings {options.request!r}. {did_you_mean(options.request, section.requests)}"
            "Write them under `requests:` of the section `feeds`."
        )


def notes_for(section: FeedsSection, options: FeedOptions) -> Iterator[str]:
    """What a person who has just added a feed wants to know."""
    model = section.models.get(options.model)
    if model is not None and model.provider is Provider.EXTRACTIVE:
        yield (
            f"The model {options.model!r} is extractive: every article counts as worth a post, and its summary is "
            "its first sentences."
        )
    if options.backfill == 0:
        yield "What the feed lists now is not posted, only what it lists from now on (`backfill`)."
