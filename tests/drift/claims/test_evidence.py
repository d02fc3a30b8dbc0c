"""docs/results.md and docs/findings.md have the numbers of the files in docs/results."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import tiny
import xarray as xr
from blocks import ROOT

from drift.analyses.over_seeds import estimate
from drift.claims import claims, questions
from drift.claims.campaign import execute, judge, plan
from drift.config.shipped import plans
from figures import cli


@pytest.fixture(scope="module")
def evidence():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        from _ext import evidence

        yield evidence


@pytest.fixture(scope="module")
def blocks(evidence):
    return evidence.numbers()


def test_the_pages_have_the_numbers_of_the_files(evidence, blocks):
    for page in evidence.PAGES:
        text = page.read_text(encoding="utf-8")
        assert evidence.filled(text, blocks, evidence.OTHERS) == text, f"python docs/_ext/evidence.py: {page.name}"
        assert "<!-- end -->" in text


def test_a_page_is_filled_between_its_marks_alone(evidence):
    page = "before\n<!-- one -->\nold\n<!-- end -->\nbetween\n<!-- two -->\n<!-- end -->\n"
    once = evidence.filled(page, {"one": "1", "two": "2"})
    assert once == "before\n<!-- one -->\n1\n<!-- end -->\nbetween\n<!-- two -->\n2\n<!-- end -->\n"
    assert evidence.filled(once, {"one": "1", "two": "2"}) == once
    with pytest.raises(LookupError, match="two"):
        evidence.filled(page, {"one": "1"})


def test_a_number_within_a_sentence_is_filled_too(evidence):
    page = "so <!-- one -->9 of 9<!-- end --> and <!-- two --><!-- end -->.\n"
    assert evidence.filled(page, {"one": "1 of 2", "two": "2"}) == (
        "so <!-- one -->1 of 2<!-- end --> and <!-- two -->2<!-- end -->.\n"
    )


def test_rounds_that_runs_share_count_once(evidence):
    class Run:
        def __init__(self, seed, seconds):
            self.experiment = tiny.experiment(f"seed={seed}")
            self.content = {"seconds": seconds}

    shared = [Run(0, [10.0, 11.0, 12.0]), Run(0, [10.0, 11.0, 9.0]), Run(1, [10.0])]
    assert evidence.evidence_runs.seconds(shared) == 10 + 11 + 12 + 9 + 10


def test_effects_in_log2_are_written_as_ratios(evidence):
    assert evidence.span(estimate([-1.0, -1.0, -1.0]), 3, "log2") == "0.5 [0.5, 0.5]"
    assert evidence.span(estimate([2.0]), 2) == "+2.00"
    assert evidence.span(estimate([]), 2) == ""
    low, high = (float(part) for part in evidence.span(estimate([1.0, 3.0, 2.0]), 2).split("[")[1][:-1].split(", "))
    np.testing.assert_allclose([low, high], [2 - 4.3027 / 3**0.5, 2 + 4.3027 / 3**0.5], atol=0.01)


def cells(line):
    return [cell.strip() for cell in line[1:-1].split("|")]


def test_the_counts_of_the_page_are_those_of_the_list(evidence, blocks, capsys):
    with pytest.raises(SystemExit):
        cli.main(["reproduce", "--list", "--json", "--files", str(evidence.FILES)])
    listed = json.loads(capsys.readouterr().out)
    rows = [cells(line) for line in blocks["recorded"].splitlines() if line.startswith("|")][2:]
    assert [row[0] for row in rows] == [one["item"] for one in listed]
    assert [row[3] for row in rows] == [one["runs"].replace(" of ", "/") for one in listed]
    assert [row[4].replace("`", "") for row in rows] == [one["lacking"] for one in listed]
    assert [float(row[6]) for row in rows] == [one["hours"] for one in listed]


def test_a_row_whose_files_lack_several_rounds_says_what_it_has_instead(evidence):
    asked = {one.name: one for one in claims()}
    campaign = plan.load(plans()["reproduction"])
    recorded = judge.by_identity(evidence.FILES)
    (item,) = [one for one in campaign.items if one.name == "ima-table1-fmnist-shards2"]
    (verdict, *_) = judge.of_claims([asked["ima-more-models"]], campaign, recorded)
    short = sum(
        "ima-more-models" in lacking for units in item.units for lacking in execute.lacking(units, recorded).values()
    )
    assert verdict.short == short
    empty = {one.name: [] for one in campaign.items}
    for number in (0, 2):
        text = evidence.evidence_claims.rows([replace(verdict, short=number)], campaign, empty)
        said = "As taken: the last stored round alone (2 runs to measure again)."
        assert (said in text) == (number > 0)
    lost = replace(verdict, short=0, seeds=(0, 2), reason="seed 1: fedavg diverged after round 7")
    assert "**Seed 1: fedavg diverged after round 7.**" in evidence.evidence_claims.rows([lost], campaign, empty)


def test_the_verdict_of_a_claim_stands_next_to_its_words(blocks):
    head, _, *rows = (cells(line) for line in blocks["claims"].splitlines() if line.startswith("|"))
    assert head[:2] == ["claim", "verdict"]
    assert rows and all(re.fullmatch(r"\*\*[^*]+\*\*", row[1]) for row in rows)


def test_a_run_without_its_last_accuracy_is_named_in_place_of_a_number_of_another_round(evidence):
    campaign = plan.load(plans()["reproduction"])
    (item,) = [one for one in campaign.items if one.name == "fedlaw-table1-cifar10-dir1"]
    runs = judge.runs_of([item], campaign, judge.by_identity(evidence.FILES))
    whole = evidence._accuracies({item.name: runs}, {item.name: []})
    assert "Not in the table" not in whole
    group = runs[0].content["measured"][0]
    cut = {**group, "accuracy": [*group["accuracy"][:-1], None]}
    changed = replace(runs[0], content={**runs[0].content, "measured": [cut]})
    text = evidence._accuracies({item.name: [changed, *runs[1:]]}, {item.name: []})
    seed, label = changed.experiment.seed, changed.label
    assert f"Not in the table of `{item.name}`: seed {seed}: {label} has no accuracy in round 59." in text
    before, after = (
        [int(cells(line)[2]) for line in lines.splitlines()[2:] if line.startswith("|")] for lines in (whole, text)
    )
    assert sum(before) == sum(after) + 1


def test_seeds_that_were_added_are_those_with_the_digest_where_others_have_none(evidence):
    campaign = plan.load(plans()["reproduction"])
    (item, *_) = campaign.items
    spec = tiny.experiment
    runs = [SimpleNamespace(plan=text, experiment=spec(f"seed={seed}")) for seed, text in enumerate(("", item.digest))]
    empty = {one.name: [] for one in campaign.items}
    assert evidence.provenance.added({**empty, item.name: runs}, campaign) == {item.name: [1]}
    assert evidence.provenance.added({**empty, item.name: runs[1:]}, campaign) == {}


def test_each_row_has_an_anchor_that_the_settings_link_to(blocks):
    anchors = set(re.findall(r'<a id="([^"]+)"', blocks["claims"]))
    linked = set(re.findall(r"results\.md#([^)]+)\)", blocks["settings"]))
    assert anchors == linked
    assert len(anchors) == blocks["claims"].count("<a id=")


def anchors(text):
    """Anchors that the site knows: those before a word, which `docs/_ext/formulas.py` turns into targets."""
    every = re.findall(r'<a id="([^"]+)"></a>(.?)', text)
    assert all(re.match(r"[\w-]", after) for _, after in every), [name for name, after in every if not after.isalnum()]
    return [name for name, _ in every]


def test_three_clicks_lead_from_a_claim_to_its_row_its_settings_and_its_runs(evidence):
    papers, results, settings = (
        (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("papers", "results", "results-settings")
    )
    listed = re.search(r"<!-- claims-of-papers -->\n(.*?)<!-- end -->", papers, re.DOTALL)[1].splitlines()[2:]
    assert [cells(line)[:2] for line in listed] == [[one.item, one.statement] for one in claims()]
    linked = [place for line in listed for place in re.findall(r"\(results\.md#([^)]+)\)", line)]
    rows = {anchors(line)[0]: line for line in results.splitlines() if line.startswith("|<a id=")}
    assert set(linked) - {"not-tested"} == set(rows)
    assert "\n### Not tested\n" in results
    places = anchors(settings)
    assert len(places) == len(set(places))
    sections = dict(re.findall(r"(?ms)^## ([\w-]+)\n(.*?)(?=^## |\Z)", settings))
    for line in rows.values():
        items = re.findall(r"\(results-settings\.md#([\w-]+)\)", cells(line)[2])
        assert items
        for item, command, runs in zip(items[::3], items[1::3], items[2::3], strict=True):
            section = sections[item]
            assert re.search(rf'<a id="{command}"></a>Command:\n\n```bash\n(.*\n)*fedscape train ', section), item
            files = re.findall(r"\((results/data/[^)]+)\)", section.partition(f'<a id="{runs}"></a>')[2])
            assert files and all((ROOT / "docs" / file).is_file() for file in files), item


def test_the_command_prints_the_rows_of_the_page(evidence, blocks, capsys):
    with pytest.raises(SystemExit):
        cli.main(["claims", "--json", "--files", str(evidence.FILES)])
    printed = [one for one in json.loads(capsys.readouterr().out) if one["seeds"]]
    rows = [cells(line) for line in blocks["claims"].splitlines() if line.startswith("|<a id=")]
    assert [(re.search(r'id="(.+?)--', row[0])[1], row[1][2:-2]) for row in rows] == [
        (one["name"], one["wording"]) for one in printed
    ]
    assert [row[3].split(" ")[0] for row in rows] == [f"{one['effect']:+.3f}" for one in printed]
    assert [row[4] for row in rows] == ["" if one["printed"] is None else f"{one['printed']:+.3g}" for one in printed]
    assert [row[6] for row in rows] == [p_of(evidence, one) for one in printed]
    assert [row[5] for row in rows] == [
        f"{len(one['seeds'])}" + f", {len(one['added'])} added" * bool(one["added"]) for one in printed
    ]
    assert any(one["added"] for one in printed)
    assert [row[7] for row in rows] == [one["same_setting"] for one in printed]


def p_of(evidence, one):
    return evidence.evidence_claims.p_value(SimpleNamespace(holm=float(one["holm"] or "nan")))


def test_the_command_prints_the_questions_of_findings(evidence, blocks, capsys):
    with pytest.raises(SystemExit):
        cli.main(["claims", "--paper", "cross", "--json", "--files", str(evidence.FILES)])
    printed = {(one["name"], one["setting"]): one for one in json.loads(capsys.readouterr().out) if one["seeds"]}
    sections = {claim.section for claim in questions()}
    rows = {name: [cells(line) for line in blocks[f"findings-{name}"].splitlines()] for name in sections}
    asked, compared = {claim.name: claim for claim in questions()}, 0
    for (name, setting), one in printed.items():
        head, _, *lines = rows[asked[name].section]
        effect, low, high = (one[end] if one[end] is not None else float("nan") for end in ("effect", "low", "high"))
        interval = replace(estimate([]), value=effect, low=low, high=high, number=len(one["seeds"]))
        p = p_of(evidence, one).replace("< ", "<")
        text = evidence.span(interval, 3, one["unit"]) + (f", p={p}".replace("=<", "<") if p else "")
        assert text in {line[head.index(setting)][: len(text)] for line in lines}, name
        assert one["wording"].startswith("too few") or one["wording"] == one["verdict"] == "excludes no effect"
        compared += 1
    assert compared > 50
    with pytest.raises(SystemExit):
        cli.main(["claims", "--claim", "cross-ima-change", "--files", str(evidence.FILES)])
    out = capsys.readouterr().out
    (row, *_) = [line for line in out.splitlines() if line.strip().startswith("cross-ima-change")]
    assert f"{2 ** printed['cross-ima-change', 'cross-fmnist-mlp-shards2']['effect']:.3g} (ratio)" in row


def test_a_row_says_the_rounds_that_it_is_measured_on_and_a_setting_that_was_written_for_it(evidence, blocks):
    rows = {
        re.search(r'id="(.+?)"', line)[1]: cells(line) for line in blocks["claims"].splitlines() if "<a id=" in line
    }
    assert rows["ima-heterogeneity-tracks--cross-fmnist-mlp-shards2"][2].endswith(", rounds 60,80,100,117-119")
    assert rows["ima-mean-below--ima-table1-fmnist-dir01"][2].endswith(", rounds 200,297-299")
    assert "rounds" not in rows["fedeve-accuracy--fedeve-table1-mnist-dir01"][2]
    assert rows["fedlaw-shrinking-helps--ima-table1-fmnist-shards2"][2].endswith(", rounds 150,299"), "none at 224"
    assert rows["ima-window-gains--ima-table1-fmnist-shards2"][2].endswith(", rounds 150,224,299")
    assert rows["ima-between-globals--ima-table1-fmnist-dir01"][2].endswith(", rounds 290-299")
    assert evidence.evidence_claims._spans([0, 1, 3, 5, 6, 7]) == ["0,1", "3", "5-7"]
    path = plans()["reproduction"]
    assert evidence.provenance.settings_file(path).read_text(encoding="utf-8") == evidence.settings_of_rows()
    (item, *_) = plan.load(path).items
    changed = item.model_copy(update={"value": 1.0, "claims": item.claims[:1]})
    (claim, *_) = claims()
    assert evidence.provenance.row_key(claim, [item]) != evidence.provenance.row_key(claim, [changed])


def test_items_that_a_claims_rows_leave_out_are_named_with_the_reason(blocks):
    lines = {line.partition(". `")[0]: line for line in blocks["waiting"].splitlines()}
    lacking = lines["- Neither planned nor in the files: ima-table1-fmnist-dir01"]
    assert "`ima-window-gains`" in lacking and "`fedlaw-shrinking-helps`" in lacking
    (waits,) = [line for line in lines.values() if line.endswith(" `ima-accuracy-fedavg`")]
    assert "not trained yet" in waits and "ima-table1-cifar10-shards2" in waits
    campaign = plan.load(plans()["reproduction"])
    for claim in claims():
        named = " ".join(line for line in lines.values() if f"`{claim.name}`" in line)
        for item in (item.name for item in campaign.items if claim.name in item.claims):
            rows = [line for line in blocks["claims"].splitlines() if f'"{claim.name}--' in line]
            assert any(item in line for line in rows) or item in named, (claim.name, item)


def test_rows_whose_interval_merely_excludes_the_printed_effect_are_listed(blocks):
    missed = []
    for row in (cells(line) for line in blocks["claims"].splitlines() if line.startswith("|<a id=")):
        low, high = map(float, re.search(r"\[(.+), (.+)\]", row[3]).groups()) if "[" in row[3] else (-1e9, 1e9)
        if row[4] and not low <= float(row[4]) <= high and not re.search("differs|fewer than 3", row[1]):
            missed.append(re.search(r'id="(.+?)"', row[0])[1])
    assert re.findall(r"\(#(.+?)\)", blocks["excluded"]) == missed
    assert len(missed) == 4


def test_files_of_one_method_and_seed_are_told_apart_by_what_the_rows_vary(blocks):
    section = blocks["settings"].partition("## lss-fig6-cifar10")[2]
    for count in range(1, 7):
        (row,) = [cells(line) for line in section.splitlines() if line.startswith(f"|LSS (candidates = {count})|")]
        for seed, cell in enumerate(row[1:]):
            (file,) = re.findall(r"\((results/data/.+?)\)", cell)
            experiment = json.loads((ROOT / "docs" / file).read_text())["experiment"]
            assert (experiment["seed"], experiment["method"]["candidates"]) == (seed, count)
    files = [cell for line in blocks["settings"].splitlines() if "results/data" in line for cell in cells(line)]
    assert all(cell.count("results/data") <= 1 for cell in files), "two runs of one name and seed"


def test_each_wording_of_a_row_is_counted(evidence, blocks):
    _, _, *rows = (cells(line) for line in blocks["tally"].splitlines())
    assert sum(int(row[1]) for row in rows[:-1]) == int(rows[-1][1]) == blocks["claims"].count("<a id=")
    assert blocks["below-margin"] == "7 of the 12"


def test_bounds_are_rounded_so_that_they_stay_true(evidence):
    runs = evidence.evidence_runs
    assert (runs.at_most(0.4101, 2), runs.at_most(0.41, 2)) == ("0.42", "0.41")
    assert (runs.at_least(0.7384, 2), runs.at_least(0.73, 2)) == ("0.73", "0.73")


def test_the_ratios_of_costs_by_seed_are_those_of_the_analysis_behind_the_table(evidence):
    class Run:
        label = "fedavg"

        def __init__(self, seed):
            self.experiment = tiny.experiment(f"seed={seed}", "rounds=3")

        def kept(self, what):
            return [1, 2]

        def cached(self, analysis, **options):
            assert (analysis.__name__, options["kinds"]) == ("drift_curvature", ["client", "change", "random"])
            coords = {"round": [1, 2], "kind": options["kinds"]}
            costs = {"cost": [[1.0, 3.0, 1.0], [1.0, 1.0, 1.0]], "quadratic": [[9.0, 2.0, 9.0], [9.0, 1.0, 9.0]]}
            return xr.Dataset({name: (("round", "kind"), rows) for name, rows in costs.items()}, coords)

    assert evidence.evidence_runs._change_errors([Run(4), Run(1)]) == "0.75 (seed 1), 0.75 (seed 4)"


def test_the_manuscript_has_the_answers_of_both_data_sets_and_their_settings(blocks):
    table = [cells(line) for line in blocks["findings-sampling"].splitlines()]
    (row,) = [line for line in table if line[1] == "averaging alone over FedAvg" and line[2].startswith("0.9")][:1]
    assert blocks["cross-alone-sampling"] == " and ".join(row[2:])
    assert blocks["mean-cross-alone-sampling"] == " and ".join(cell.partition(" ")[0] for cell in row[2:])
    assert "cross-gamma-drift" not in blocks, "one data set alone"
    settings = dict(cells(line) for line in blocks["settings-cross"].splitlines())
    assert settings["data"] == "fashion_mnist (`cross-fmnist-mlp-shards2`), cifar10 (`cross-cifar10-mlp-shards2`)"
    assert (settings["clients K"], settings["clients per round m"]) == ("50", "10")
    assert (settings["IMA averages from round"], settings["models in IMA's mean, P"]) == ("90", "5")


def test_a_paper_has_one_column_for_each_of_its_settings(blocks):
    heads = [cells(line) for line in blocks["settings"].splitlines() if line.startswith("|setting|")]
    assert heads and all(len(set(head)) == len(head) for head in heads)
    assert "of IMA, Table I: [ima-accuracy-fedprox]" in blocks["settings"]
    assert not re.search(r"(?m)^- [^\[`]*: ?$", blocks["settings"]), "a paper's setting without a claim"


def test_printed_accuracies_stand_beside_ours(blocks):
    rows, item = {}, ""
    for row in (cells(line) for line in blocks["accuracies"].splitlines() if line.startswith("|")):
        item = row[0] or item
        rows[item.strip("`"), row[1]] = row[5]
    assert rows["fedlaw-table3-cifar10-dir01", "FedLAW"] == "62.46"
    assert rows["lss-table1-cifar10", "LSS"] == "75.16"
    assert rows["fedeve-table1-mnist-dir001", "SCAFFOLD"] == "5.13"
    assert rows["ima-table1-fmnist-dir01", "IMA"] == "83.06"
    assert rows["fedeve-table1-mnist-dir001", "IMA"] == "", "the paper has no such row"


def test_no_line_begins_with_a_number_between_marks(evidence):
    """Markdown takes a line that begins with a comment for HTML, and ends the paragraph."""
    for page in evidence.PAGES:
        assert not re.findall(r"(?m)^\s*<!-- [a-z0-9-]+ -->[^\n]+", page.read_text(encoding="utf-8")), page.name
