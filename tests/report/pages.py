"""What every page must do in a browser."""

from __future__ import annotations

from contextlib import contextmanager


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


def check_sorting(page, columns):
    """A click on a heading sorts its column, another turns it round."""

    def column(k):
        return page.eval_on_selector_all(
            f"#methods tbody td:nth-child({k})", "c => c.map(x => x.dataset.value ?? x.textContent)"
        )

    for k, kind in columns:
        page.locator("#methods th button").nth(k - 1).click()
        assert [kind(v) for v in column(k)] == sorted(kind(v) for v in column(k))
        page.locator("#methods th button").nth(k - 1).click()
        assert [kind(v) for v in column(k)] == sorted((kind(v) for v in column(k)), reverse=True)
