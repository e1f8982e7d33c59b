"""The stand-ins that the feeds add to `tsuzuki sandbox`."""

from tsuzuki.sandbox.stand_in_kind import StandInKind

STAND_INS = (
    StandInKind(
        name="feeds",
        title="feed site",
        usual_port=8932,
        start="tsuzuki.collectors.feeds.sandbox.feed_site.demo:start",
    ),
    StandInKind(
        name="gemini",
        title="Gemini",
        usual_port=8933,
        start="tsuzuki.collectors.feeds.sandbox.gemini:start",
    ),
    StandInKind(
        name="openai",
        title="OpenAI-compatible server",
        usual_port=8934,
        start="tsuzuki.collectors.feeds.sandbox.openai_compatible:start",
    ),
    StandInKind(
        name="mastodon",
        title="Mastodon",
        usual_port=8935,
        start="tsuzuki.collectors.feeds.sandbox.mastodon:start",
        requirement="tsuzuki[sandbox]",
    ),
)
