"""Words for those who do not see the thumbnails of the gallery: each is named after its page."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

THUMBNAIL = re.compile(r"sphx_glr_(.*)_thumb\.png$")


def name_thumbnails(app: Sphinx, tree: nodes.document, page: str) -> None:
    for image in tree.findall(nodes.image):
        thumbnail = THUMBNAIL.search(image["uri"])
        if thumbnail and not image.get("alt"):
            title = app.env.titles[f"gallery/{thumbnail[1]}"].astext()
            image["alt"] = f"A picture from the page: {title}"


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("doctree-resolved", name_thumbnails)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
