"""An execution that failed before there was anything to execute."""

from tsuzuki.engine.outcome import StopCause


class NeverBegun:
    """There is nothing to stop; its outcome is on its way."""

    def stop(self, cause: StopCause, *, at_once: bool = False) -> None:
        pass
