"""The heads of the confusion matrix are whole, above their columns, and say what rows and columns are."""

import pytest
from browsing import MARKS
from exploring import idle

pytestmark = MARKS
CARD = "document.getElementById('stage').view.why.samples"
SHOW = f"""names => {{ const card = {CARD}, value = card.value;
    const confusion = names.map((_, i) => names.map((_, j) => (i + 3 * j) % 120));
    card.content.replaceChildren(...card.shown({{ ...value, confusion, classes: names }})); }}"""
FASHION = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]


@pytest.mark.parametrize("names", [list("0123456789"), FASHION], ids=["digits", "fashion"])
def test_heads_are_whole_and_above_their_columns(page, names):
    page.evaluate("document.getElementById('stage').view.set({ model: 'end' })")
    idle(page)
    page.evaluate(SHOW, names)
    heads = page.evaluate("""[...document.querySelectorAll('.confusion thead tr:last-child th:not(.axis)')].map(
        (one, i) => { const box = one.getBoundingClientRect(), text = one.firstChild;
            const cell = document.querySelectorAll('.confusion tbody tr:first-child td')[i].getBoundingClientRect();
            const range = document.createRange(); range.selectNodeContents(text);
            const own = range.getBoundingClientRect();
            return { name: text.textContent, lies: getComputedStyle(text).writingMode, size: [own.width, own.height],
                whole: text.scrollHeight <= Math.max(text.offsetHeight, 1) + 1 && own.height <= box.height + 1,
                off: Math.abs(own.left + own.width / 2 - cell.left - cell.width / 2) }; })""")
    assert [one["name"] for one in heads] == names
    assert all(one["whole"] and one["off"] < 3 for one in heads), heads
    assert {one["lies"] for one in heads} == {"vertical-rl" if names == FASHION else "horizontal-tb"}
    wide = page.evaluate("(one => one.scrollWidth - one.clientWidth)(document.querySelector('.samples .wide'))")
    assert wide <= 0
    rows = page.locator(".confusion tbody th").all()
    assert [one.text_content() for one in rows] == names
    assert all(one.evaluate("one => one.scrollWidth <= one.clientWidth") for one in rows)
    assert page.locator(".confusion .axis").all_text_contents() == ["predicted as", "class"]
    page.evaluate("document.getElementById('stage').view.set({ model: '' })")
