"""One domain per client. Source: LSS paper, Digit-5 and DomainNet; papers.md 6.3."""

import numpy as np

from drift.partitions._partitioner import Grouped, Groups, Parts, require_samples


class Partition(Grouped):
    """Client k has all samples of the k-th domain.

    With more domains than clients, those of `leave_out` are dropped; LSS has five clients and DomainNet
    six domains, without naming the one left out. The test set keeps them: `task.dataset_options.domains` leaves a
    domain out of both. Needs domains (digits3, digit5, pacs, domainnet).

    Args:
        leave_out: Numbers of the dropped domains; default: the last ones (sketch, of DomainNet).
    """

    leave_out: tuple[int, ...] | None = None

    def split(self, labels: np.ndarray, clients: int, rng: np.random.Generator, groups: Groups | None = None) -> Parts:
        require_samples(labels, clients)
        domain = self.group("domain", labels, groups)
        present = np.unique(domain)
        domains = present[:clients] if self.leave_out is None else np.setdiff1d(present, self.leave_out)
        if len(domains) != clients:
            raise ValueError(
                f"{clients} clients and {len(domains)} domains; one domain per client needs {len(domains)} clients, or "
                f"other domains than {present.tolist()} without {list(self.leave_out or ())}."
            )
        return [np.flatnonzero(domain == number) for number in domains]
