import tiny

from drift.analyses.samples import client_losses


def test_a_round_takes_one_evaluation_of_its_clients_and_one_of_the_samples_of_each(tmp_path, monkeypatch):
    run, calls, evaluate = tiny.trained(tmp_path), [], client_losses.evaluate
    monkeypatch.setattr(client_losses, "evaluate", lambda *given, **how: calls.append(1) or evaluate(*given, **how))
    client_losses.client_losses(run, round=1)
    assert len(calls) == 1 + len(run.round(1).ids)
