"""FedRep, a shared body under personal heads."""

from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from drift.config.method import Method
from drift.training.client import Client, Update
from drift.training.model_layers import freeze, head_mask, require_headed
from landscape.model.task import Task


class FedRep(Method):
    """Clients train their own head first, body held, and then the body, head held; the body is what they share.

    A client keeps its head, at first the one it receives. The evaluated global model has the mean of the uploaded
    heads.

    Source: Collins et al. 2021, algorithm 1; a baseline of the LSS paper, with one epoch on the head.
    """

    requires = (require_headed,)
    corrections: ClassVar[tuple[str, ...]] = ("the entries that it holds moved by rounding",)
    stateful: ClassVar[bool] = True
    personal: ClassVar[bool | None] = True

    head_epochs: int = Field(1, gt=0, description="local epochs on the head; local.epochs are those on the body")

    def client_numbers(self, task: Task) -> int:
        """The head."""
        return int(head_mask(task.model, task.layout, self.name()).sum())

    def local(self, client: Client) -> Update:
        """Head, then body."""
        head = head_mask(client.flat.module, client.flat.layout, self.name()).to(client.start.device)
        start = client.start.clone()
        if "head" in client.state:
            start[head] = client.state["head"]
        decay = client.local.weight_decay
        first = client.batches(epochs=self.head_epochs, order=client.generator("head"))
        head_trained = replace(client, start=start).train(freeze(~head, decay), batches=first)
        ready = replace(client, start=head_trained.theta, buffers=head_trained.buffers)
        update = ready.train(freeze(head, decay))
        steps = head_trained.steps + update.steps
        loss = (head_trained.loss * head_trained.steps + update.loss * update.steps) / steps if steps else update.loss
        state = {**update.state, "head": update.theta[head]}
        return replace(update, steps=steps, loss=loss, state=state)
