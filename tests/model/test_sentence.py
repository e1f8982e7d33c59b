"""A sentence is its English text to every reader, and can be filled again in another language."""

import copy
import json
from datetime import UTC, datetime

from tsuzuki.model.secrets import SecretMask
from tsuzuki.model.sentence import CommandLine, Sentence

MOMENT = datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC)


def test_a_sentence_is_a_string_with_its_values_in_it() -> None:
    ended = Sentence("has ended")
    told = Sentence(
        "%(who)s %(why)s since %(at)s: %(tags)s", who="w1", why=ended, at=MOMENT, tags=("a", "b")
    )
    assert told == "w1 has ended since 2026-03-01 12:00:05Z: a, b"
    assert json.dumps([told]) == json.dumps([str(told)])


def test_a_text_without_values_may_have_a_percent_sign() -> None:
    assert Sentence("100 % are done") == "100 % are done"


def test_a_copy_remembers_its_values() -> None:
    copied = copy.deepcopy(Sentence("Retries run %(run)s.", run=7))
    assert (copied.template, copied.values) == ("Retries run %(run)s.", {"run": 7})


def test_a_secret_in_a_value_is_masked_also_in_the_values() -> None:
    inner = Sentence("it said %(text)s", text="hunter2-secret")
    told = Sentence(
        "%(why)s; %(line)s (%(run)s)", why=inner, line=CommandLine("x hunter2-secret"), run=7
    )
    masked = SecretMask(lambda: ["hunter2-secret"]).value({"next": [told]})["next"][0]
    assert masked == "it said ***; x *** (7)"
    assert isinstance(masked, Sentence)
    assert isinstance(masked.values["line"], CommandLine)
    assert "hunter2" not in repr(masked.values)
