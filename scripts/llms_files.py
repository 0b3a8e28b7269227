"""``llms.txt`` and ``llms-full.txt`` of the documentation site, for programs that read instead of people.

A hook of mkdocs, after the convention of llmstxt.org: the first file lists every page with its first sentence, the
second holds all pages one after the other. Generated pages (gallery, decisions) are left out: they repeat the models'
files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

SECTIONS = {
    "tutorials": "Tutorials",
    "how_to": "How to",
    "reference": "Reference",
    "explanation": "Explanation",
}
"""Folder of the documentation → title, in the order of reading."""

_FEWEST_WORDS = 3


@dataclass(frozen=True, slots=True)
class DocumentationPage:
    """One page: its address in the site, its path in ``docs``, and its text in Markdown."""

    url: str
    path: str
    markdown: str

    @property
    def title(self) -> str:
        """The first heading."""
        return next((line.lstrip("# ") for line in self.markdown.splitlines() if line.startswith("# ")), self.path)

    @property
    def first_sentence(self) -> str:
        """The first sentence of prose or of a list, without links and code blocks; empty where there is none."""
        prose = re.sub(r"^```.*?^```$", "", self.markdown, flags=re.MULTILINE | re.DOTALL)
        for paragraph in prose.split("\n\n"):
            text = re.sub(r"^(?:[-*]|\d+\.)\s+", "", " ".join(paragraph.split()))
            if len(text.split()) >= _FEWEST_WORDS and text[0] not in "#<|!:(":
                text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)
                return re.split(r"(?<=[.:?!])\s", text, maxsplit=1)[0].rstrip(":")
        return ""


_pages: dict[str, DocumentationPage] = {}


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> None:  # noqa: ARG001
    """Keep the text of a page that somebody wrote."""
    path = page.file.src_uri
    if path.split("/")[0] in SECTIONS or path == "index.md":
        _pages[path] = DocumentationPage(page.url, path, markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """Write both files into the site."""
    pages = [_pages[path] for path in sorted(_pages)]
    site = Path(config.site_dir)
    description = str(config.site_description)
    (site / "llms.txt").write_text(form_index(str(config.site_name), description, pages), encoding="utf-8")
    (site / "llms-full.txt").write_text(join_pages(pages), encoding="utf-8")
    _pages.clear()


def form_index(name: str, description: str, pages: list[DocumentationPage]) -> str:
    """Return the list of pages, by section."""
    lines = [f"# {name}", "", f"> {description}", ""]
    for folder, title in SECTIONS.items():
        lines += [f"## {title}", ""]
        for page in pages:
            if page.path.startswith(f"{folder}/"):
                lines.append(f"- [{page.title}]({page.url}): {page.first_sentence}")
        lines.append("")
    return "\n".join(lines)


def join_pages(pages: list[DocumentationPage]) -> str:
    """Return all pages, one after the other, each under its path: the sections in the order of reading."""
    order = ["index.md", *SECTIONS]
    sorted_pages = sorted(pages, key=lambda page: (order.index(page.path.split("/")[0]), page.path))
    return "\n\n".join(f"<!-- {page.path} -->\n\n{page.markdown.strip()}" for page in sorted_pages) + "\n"
