"""Errors that mean that memory does not suffice."""

_SIGNS = ("can't allocate memory", "out of memory", "not enough memory", "std::bad_alloc")


class OutOfMemory(RuntimeError):
    """Memory does not suffice; the message names the work and what to lower."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory of the machine or of an accelerator does not suffice."""
    if isinstance(error, MemoryError | OutOfMemory):
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error).lower() for sign in _SIGNS)
