"""The one class of warning that a user may want to filter."""

import sys
import warnings

__all__ = ["DisentanglementWarning"]


class DisentanglementWarning(UserWarning):
    """A score was computed, but its number needs a second look.

    Every warning of the library is of this class; its message names the latent, the
    factor or the row that it is about, where there is one.

    Examples
    --------
    >>> import warnings
    >>> from skdisent.exceptions import DisentanglementWarning
    >>> warnings.simplefilter("error", DisentanglementWarning)  # be strict
    >>> warnings.resetwarnings()
    """


def warn(message):
    """Warn at the line, outside of the library, that led here."""
    package = __name__.partition(".")[0]
    level, frame = 2, sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[
        0
    ] in (package, "sklearn", "contextlib"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, DisentanglementWarning, stacklevel=level)
