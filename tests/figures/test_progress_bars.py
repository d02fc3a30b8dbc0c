"""Bars of the command line: they state how much there is, and end when all is done."""

from pathlib import Path


def test_the_bar_of_an_analysis_knows_how_much_there_is(fedscape, file, bars):
    name = Path(fedscape("train", file)[1].strip()).name
    plane = ["analyse", "plane", name, "--set", "points=3"]
    over_rounds = [["analyse", analysis, name] for analysis in ("coherence", "error-averaged")]
    for tokens, total in ((plane, 9 + 4), *((one, 3) for one in over_rounds)):
        bars.clear()
        assert fedscape(*tokens)[0] == 0
        assert [done for _, done, _ in bars] == sorted(done for _, done, _ in bars)
        assert bars[0][1:] == (0, total) and bars[-1][1:] == (total, total)
        bars.clear()
        assert fedscape(*tokens)[0] == 0  # it is there
        assert bars == []


def test_the_bars_of_pictures_and_report_know_how_much_there_is(fedscape, file, bars):
    name = Path(fedscape("train", file)[1].strip()).name
    bars.clear()
    assert fedscape("figures", "draw", "lines-globals", name, "--set", "points=4")[0] == 0
    line = [(0, 7), (7, 7)]  # points and marks; one line after the other
    assert [bar[1:] for bar in bars if bar[1] in (0, 7)] == 2 * line
    bars.clear()
    assert fedscape("publish", name)[0] == 0
    assert {total for _, _, total in bars} == {1}
    assert bars[0][1] == 0 and bars[-1][1] == 1
