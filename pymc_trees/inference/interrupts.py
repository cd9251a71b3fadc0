"""An interrupt is an interrupt wherever it arrives."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def plain_interrupts() -> Iterator[None]:
    """Raise the `KeyboardInterrupt` that compiled code has wrapped into a `SystemError`.

    A function compiled by numba that returns while an interrupt is pending "returned a result with
    an exception set", which Python reports in place of the interrupt.
    """
    try:
        yield
    except SystemError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise error.__cause__ from None
        raise
