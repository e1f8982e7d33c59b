"""Why a simulation stops. Not an `Exception`, so that no handler of errors in the engine can swallow it."""


class InvariantViolated(BaseException):
    """Something happened that never may."""


class Livelock(BaseException):
    """A fiber goes on without ever waiting."""
