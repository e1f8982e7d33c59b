"""No model: every article that has a text is worth a post, and the summary is its first sentences. Nothing is sent."""

from tsuzuki.collectors.feeds.model.protocol import ModelAnswer, Question, Usage, Verdict
from tsuzuki.collectors.feeds.model.sentences import first_sentences, shortened
from tsuzuki.collectors.feeds.tables import PreparationStep

FREE = Usage(cost_micros=0)


class ExtractiveModel:
    """For people without a key, and to try things out."""

    identity = "extractive/1"

    def __init__(self, *, name: str) -> None:
        self.name = name

    def ask(self, question: Question) -> ModelAnswer:
        if question.step is PreparationStep.SCREENING:
            has_text = bool(question.text.strip())
            verdict = Verdict.WORTH if has_text else Verdict.NOT_READY
            why = None if has_text else "the page has no text"
            return ModelAnswer(verdict=verdict, text=None, why=why, usage=FREE, raw="")
        summary = first_sentences(
            question.text, characters_max=question.characters_max, without=question.title
        )
        title = shortened(" ".join(question.title.split()), question.characters_max)
        return ModelAnswer(verdict=None, text=summary or title, why=None, usage=FREE, raw="")

    def estimated_tokens(self, question: Question) -> int:
        del question
        return 0

    def estimated_cost_micros(self, question: Question) -> int | None:
        del question
        return 0

    def check_access(self) -> str:
        return "extractive: no model is called"

    def close(self) -> None:
        """There is nothing to close."""
