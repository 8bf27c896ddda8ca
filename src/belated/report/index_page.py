"""The first page of a folder of pages: what each says, in a sentence."""

from __future__ import annotations

from typing import Any

from belated.report.template import fill

_KINDS = {
    "monitor": "Is the model right?",
    "forecast": "What is still to come?",
    "describe": "How late are labels?",
    "compare": "Which correction?",
}


def render_index(summary: dict[str, Any]) -> str:
    """A page of HTML for ``title``, ``written`` and ``pages``, each with ``name``, ``command``, ``source``, ``code``, ``sentence``, ``warnings``, ``ran``, ``page_of``, ``page_code`` and ``has_limits``."""
    pages = summary["pages"]
    broken = [page for page in pages if page["page_code"] == 1]
    failed = [page for page in pages if page["code"] not in (0, 1)]
    groups = [(kind, [page for page in pages if page["command"] == name]) for name, kind in _KINDS.items()]
    return fill(
        "index.html",
        {**summary, "name": summary["title"]},
        {},
        groups=[group for group in groups if group[1]],
        lead=_lead(pages, broken, failed),
        good=not broken and not failed,
    )


def _lead(pages: list[Any], broken: list[Any], failed: list[Any]) -> str:
    said = []
    if broken:
        said.append(f"Broken limits: {', '.join(page['source'] for page in broken)}.")
    if failed:
        said.append(f"Could not be run: {', '.join(page['name'] for page in failed)}.")
    watched = [page for page in pages if page["has_limits"]]
    if watched and not broken and not any(page in failed for page in watched):
        said.insert(0, "No monitor's limit is broken.")
    return " ".join(said) or f"{len(pages)} {'page is' if len(pages) == 1 else 'pages are'} up to date."
