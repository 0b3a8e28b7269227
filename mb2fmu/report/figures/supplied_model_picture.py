"""The model's own picture: SVG is shown as an image (nothing in it can run or load), text as text."""

from __future__ import annotations

import base64

from lxml import etree
from markupsafe import Markup, escape

_SVG_TAG = "{http://www.w3.org/2000/svg}svg"


def embed_supplied_model_picture(diagram: str, alternative: str) -> Markup:
    """Return an ``img`` element with the drawing in it; empty if ``diagram`` is no SVG document.

    Args:
        diagram: What the model gives: SVG, text, or nothing.
        alternative: What the picture shows, for those who do not see it.
    """
    if "<svg" not in diagram:
        return Markup()
    text = diagram.strip()
    if "xmlns=" not in text:
        text = text.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)
    try:
        root = etree.fromstring(text.encode(), parser)
    except etree.XMLSyntaxError:
        return Markup()
    if root.tag != _SVG_TAG or root.getroottree().docinfo.doctype:  # a document type can declare entities
        return Markup()
    data = base64.b64encode(etree.tostring(root)).decode("ascii")
    return Markup('<img alt="{}" src="data:image/svg+xml;base64,{}">').format(escape(alternative), data)
