"""Runs and lines without the secrets in them, masked before any text is made of them.

A text that is cut may end within a secret, which would not be recognised any more; and a value that has become text
has no keys by which its secrets are found.
"""

from dataclasses import replace

from tsuzuki.model.run import Run
from tsuzuki.model.secrets import SecretMask
from tsuzuki.services.logs import LogLine


def masked_run(run: Run, mask: SecretMask | None) -> Run:
    """Its error and its result masked; as it is without a mask."""
    if mask is None:
        return run
    error = None if run.error is None else mask.text(run.error)
    return replace(run, error=error, result=mask.value(run.result))


def masked_line(line: LogLine, mask: SecretMask | None) -> LogLine:
    return line if mask is None else replace(line, body=mask.text(line.body))
