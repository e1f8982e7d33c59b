"""Faults of a definition, as a page shows them."""

from types import SimpleNamespace
from typing import Any

from tsuzuki.model.errors import UsageError
from tsuzuki.model.secrets import SecretMask
from tsuzuki.web.pages.faults import faults_of


def test_a_fault_is_told_without_the_secrets_in_it() -> None:
    context: Any = SimpleNamespace(mask=SecretMask(lambda: ["correct-horse"]).value)
    problem = UsageError("'correct-horse' is no number", hint="Not correct-horse.")
    (fault,) = faults_of(context, problem)
    assert (fault.message, fault.hint) == ("'***' is no number", "Not ***.")
    (fault,) = faults_of(context, UsageError("wrong"))
    assert fault.hint is None
