"""The page of ``mb2fmu watch``: a frame with the motion, the verdict beside it, renewed from the server's state."""

from __future__ import annotations

from mb2fmu.report.pages.page_rendering import render_html_document


def render_model_watch_page(name: str) -> bytes:
    """Return the page of a model file; its script asks ``/state`` and shows ``/motion.html``."""
    return render_html_document("live.html.jinja", name=name)
