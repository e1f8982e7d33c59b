"""Changes applied to every generated request before it is sent."""

from typing import Any
from uuid import uuid4

import schemathesis

KEY = "Idempotency-Key"


@schemathesis.hook
def before_call(_context: Any, case: schemathesis.Case, _kwargs: Any) -> None:
    """A key that was generated twice would be one of another request, and be refused."""
    is_right = case.meta is not None and case.meta.generation.mode.is_positive
    if is_right and KEY in (case.headers or ()):
        case.headers[KEY] = uuid4().hex
