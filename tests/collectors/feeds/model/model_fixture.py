"""Questions and settings for the tests of models."""

from typing import Any

from tsuzuki.collectors.feeds.model.prompts import screening_question, summary_question
from tsuzuki.collectors.feeds.model.protocol import Question
from tsuzuki.collectors.feeds.options import FeedOptions, ModelSettings

TITLE = "新しい統計を公表"
URL = "https://example.org/news/1"
TEXT = "総務省は統計を公表した。対象は全国である。来月も公表する。"


def feed_options(**options: Any) -> FeedOptions:
    return FeedOptions(url="https://example.org/feed", **{"language": "ja", **options})


def screening(text: str = TEXT, **options: Any) -> Question:
    return screening_question(feed_options(**options), title=TITLE, url=URL, text=text)


def summary(text: str = TEXT, **options: Any) -> Question:
    return summary_question(feed_options(**options), title=TITLE, url=URL, text=text)


def settings(provider: str, **options: Any) -> ModelSettings:
    return ModelSettings.model_validate({"provider": provider, **options})
