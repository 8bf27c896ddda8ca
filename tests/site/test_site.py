"""The site, opened from its folder as files, in a real browser: every page, narrow and wide, light and dark; links, pictures, search."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"
PAGES = sorted(str(file.relative_to(SITE)) for file in SITE.rglob("*.html") if "_static" not in file.parts)


@pytest.fixture(scope="module", autouse=True)
def built(request):
    if not request.config.getoption("--browser-required"):
        pytest.skip("the site is built and read by make test-browser")
    assert PAGES, "the site is not built (make docs)"


class Parts(HTMLParser):
    """What a page links to, loads and shows, and the places in it."""

    def __init__(self, file):
        super().__init__()
        self.links, self.loaded, self.unnamed, self.places = [], [], [], set()
        self.feed(file.read_text())

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.places |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if given.get("src"):
            self.loaded.append(given["src"])
        if tag == "link" and given.get("rel") not in ("canonical", "next", "prev", "author", "index", "search"):
            self.loaded.append(given["href"])
        if tag == "img" and len(given.get("alt", "")) < 10 and given.get("class") != "icon":
            self.unnamed.append(given.get("src"))


@pytest.fixture(scope="module")
def parts():
    return {page: Parts(SITE / page) for page in PAGES}


def test_no_link_inside_the_site_is_broken(parts):
    broken = []
    for page, found in parts.items():
        for link in found.links:
            url = urlsplit(link)
            if url.scheme or url.netloc:
                continue
            target = (SITE / page).parent / unquote(url.path) if url.path else SITE / page
            name = str(target.resolve().relative_to(SITE.resolve()))
            if not target.is_file() or (
                url.fragment and name in parts and unquote(url.fragment) not in parts[name].places
            ):
                broken.append(f"{page}: {link}")
    assert broken == []


def test_nothing_is_loaded_from_elsewhere(parts):
    assert [(page, url) for page, found in parts.items() for url in found.loaded if urlsplit(url).netloc] == []


def test_pictures_have_words_for_those_who_do_not_see_them(parts):
    assert [(page, src) for page, found in parts.items() for src in found.unnamed] == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_phones_and_desks_by_day_and_by_night(browser, page):
    tab = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
    trouble, requests = [], []
    tab.on("console", lambda message: trouble.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: trouble.append(str(error)))
    tab.on("request", lambda request: requests.append(request.url))
    tab.goto((SITE / page).as_uri())
    for width in (1280, 375):
        tab.set_viewport_size({"width": width, "height": 900})
        for scheme in ("light", "dark"):
            tab.emulate_media(color_scheme=scheme)
            assert tab.evaluate("document.documentElement.scrollWidth") <= width, (width, tab.evaluate(TOO_WIDE))
            tab.wait_for_function(TURNED, arg=scheme)
            assert tab.evaluate(UNREADABLE) == [], (width, scheme)
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert trouble == []
    tab.close()


TURNED = """scheme => getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).slice(0, 3)
    .reduce((sum, part) => sum + Number(part), 0) > 384 === (scheme === "light")"""
TOO_WIDE = """() => [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1)
    .slice(0, 5).map(e => e.tagName + "." + e.className)"""
# Words whose colour is too close to what is behind them: a contrast below 3, by the formula of WCAG.
UNREADABLE = """() => {
  const numbers = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, k) => sum + v * [.2126, .7152, .0722][k], 0);
  const behind = element => {
    for (let e = element; e; e = e.parentElement) {
      const colour = numbers(getComputedStyle(e).backgroundColor);
      if (colour.length === 3 || colour[3] > .5) return colour;
    }
    return [255, 255, 255];
  };
  const bad = [];
  for (const element of document.querySelectorAll("article *")) {
    const own = [...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || !element.getClientRects().length || getComputedStyle(element).visibility === "hidden" || element.closest("svg")) continue;
    const [a, b] = [light(numbers(getComputedStyle(element).color)), light(behind(element))];
    if ((Math.max(a, b) + .05) / (Math.min(a, b) + .05) < 3 && getComputedStyle(element).opacity > .5)
      bad.push(element.tagName + "." + element.className + ": " + element.textContent.slice(0, 30));
  }
  return bad.slice(0, 5);
}"""


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("chargeback", "gallery/plot_chargebacks.html"),
        ("window", "methods/index.html"),
        ("negative weights", "methods/nndf.html"),
        ("predict_incidence", "reference/generated/belated.DelayedFeedbackClassifier.html"),
    ],
)
def test_search_finds(browser, words, found):
    tab = browser.new_page()
    tab.goto((SITE / "search.html").as_uri() + "?q=" + words.replace(" ", "+"))
    tab.wait_for_function(
        "document.querySelector('#search-results p')?.textContent.match(/found|match/)", timeout=20000
    )
    links = tab.eval_on_selector_all("#search-results li a", "links => links.map(a => a.href)")
    assert any(found in link for link in links), links
    tab.close()
