"""The one class of warning that a user may want to filter."""

__all__ = ["DisentanglementWarning"]


class DisentanglementWarning(UserWarning):
    """A score was computed, but its number needs a second look.

    Every warning of the library is of this class; its message names the latent,
    the factor or the row that it is about.

    Examples
    --------
    >>> import warnings
    >>> from skdisent.exceptions import DisentanglementWarning
    >>> warnings.simplefilter("error", DisentanglementWarning)  # be strict
    >>> warnings.resetwarnings()
    """
