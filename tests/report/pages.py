"""What every page must do in a browser."""

from __future__ import annotations

import re
from contextlib import contextmanager

EVIL = "<script>document.title='pwned'</script>"
FORMULA = f"$\\frac{EVIL}"  # as a formula, it cannot be read
SCREENS = [(width, scheme) for width in (1440, 768, 375) for scheme in ("light", "dark")]
_A4 = 718  # pixels of CSS between the margins
_TEXTS = """
() => [...document.querySelectorAll("figure svg")].filter(svg => svg.getClientRects().length).map(svg => {
  const box = svg.getBoundingClientRect(), figure = svg.parentElement.getBoundingClientRect();
  const scale = box.width / svg.viewBox.baseVal.width;
  const texts = [...svg.querySelectorAll("text")].map(text => {
    const b = text.getBoundingClientRect();
    return {text: text.textContent, size: parseFloat(getComputedStyle(text).fontSize) * scale,
            box: [b.left, b.top, b.right, b.bottom], turned: /rotate\\(-?[1-9]/.test(text.getAttribute("transform") ?? "")};
  });
  return {box: [box.left, box.top, box.right, box.bottom], width: figure.width, share: box.width / figure.width, texts};
})
"""


@contextmanager
def opened(browser, file, width, scheme):
    """A page that fits the width, takes the colours of the scheme, asks for nothing else, and runs nothing that came with the data."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    trouble, requests = [], []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(file.as_uri())
    assert page.title() != "pwned"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, background[4:-1].split(","))) > 384) == (scheme == "light")
    yield page
    assert requests == [file.as_uri()]
    assert trouble == []
    page.close()


def check_stands_alone(html, figures):
    """A page needs nothing else, and takes the colours of its style sheet."""
    assert len(html.encode()) < 3_000_000
    for word in ("src=", "@import", "url(http", "<link"):
        assert word not in html
    assert html.count("<figure") == html.count('role="img"') == figures
    assert "var(--accent)" in html and "#1060d3" not in html
    assert html.index('class="verdict') < html.index("<h2>")


def check_pictures(page, count, smallest=10.0):
    """Each chart is shown once, fills its place, and its words can be read: large enough, not cut, not on each other."""
    drawn = page.evaluate(_TEXTS)
    assert len(drawn) == count == page.locator("figure").count()
    for svg in drawn:
        left, top, right, bottom = svg["box"]
        assert svg["texts"]
        for text in svg["texts"]:
            assert text["size"] >= smallest, text
            a, b, c, d = text["box"]
            assert a >= left - 1 and b >= top - 1 and c <= right + 1 and d <= bottom + 1, text
        level = [text for text in svg["texts"] if not text["turned"]]
        for k, one in enumerate(level):
            for other in level[:k]:
                assert _overlap(one["box"], other["box"]) < 2, (one, other)
    return drawn


def _overlap(one, other):
    """By how many pixels two boxes lie on each other."""
    across = min(one[2], other[2]) - max(one[0], other[0])
    down = min(one[3], other[3]) - max(one[1], other[1])
    return min(across, down)


def check_fills(page):
    """On a wide screen, charts take up the page from side to side, two beside each other or one across."""
    main = page.evaluate("document.querySelector('main').clientWidth") - 32
    assert main > 0.9 * page.viewport_size["width"]
    for svg in page.evaluate(_TEXTS):
        assert svg["share"] > 0.99
        assert abs(svg["width"] - main) < 2 or abs(svg["width"] - (main - 32) / 2) < 2


def check_print(browser, file, figures):
    """On paper: as in light mode, nothing wider than A4, all of long tables, headings on each page."""
    page = browser.new_page(viewport={"width": _A4, "height": 1040}, color_scheme="dark")
    page.goto(file.as_uri())
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("document.documentElement.scrollWidth") <= _A4
    check_pictures(page, figures, smallest=7.5)
    boxes = page.eval_on_selector_all(
        "figure, table, pre", "all => all.map(one => [one.tagName, one.getBoundingClientRect().right])"
    )
    assert [tag for tag, right in boxes if right > _A4 + 1] == []
    assert page.eval_on_selector_all(".scroll", "all => all.every(one => one.scrollHeight <= one.clientHeight + 1)")
    heights = page.eval_on_selector_all("figure", "all => all.map(one => one.getBoundingClientRect().height)")
    assert max(heights) < 1000  # a figure is never cut in two
    pdf = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 1
    page.close()


def check_sorting(page, columns, table="methods"):
    """A click on a heading sorts its column, another turns it round."""

    def column(k):
        return page.eval_on_selector_all(
            f"#{table} tbody td:nth-child({k})", "c => c.map(x => x.dataset.value ?? x.textContent)"
        )

    for k, kind in columns:
        page.locator(f"#{table} th button").nth(k - 1).click()
        assert [kind(v) for v in column(k)] == sorted(kind(v) for v in column(k))
        page.locator(f"#{table} th button").nth(k - 1).click()
        assert [kind(v) for v in column(k)] == sorted((kind(v) for v in column(k)), reverse=True)
