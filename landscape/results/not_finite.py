"""The error of a computation that meets a model without a finite loss, output or product."""


class NotFinite(ValueError):
    """A model is not finite where it has to be; who knows whose model it is adds that."""
