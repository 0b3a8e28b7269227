"""The model's picture is shown as an image, or not at all."""

from __future__ import annotations

import base64

import pytest
from lxml import etree

from mb2fmu.report.figures.supplied_model_picture import embed_supplied_model_picture

PREFIX = "data:image/svg+xml;base64,"


def shown(diagram):
    image = etree.fromstring(str(embed_supplied_model_picture(diagram, "a <b> pendulum")).replace('">', '"/>'))
    assert image.get("alt") == "a <b> pendulum"
    return etree.fromstring(base64.b64decode(image.get("src").removeprefix(PREFIX)))


def test_a_drawing_is_an_image_with_its_meaning():
    root = shown('<svg viewBox="0 0 2 1"><circle r="1"/><text>θ₁</text></svg>')
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.findtext("{*}text") == "θ₁"


ENTITY = '<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/hostname">]><svg viewBox="0 0 1 1"><text>&x;</text></svg>'


@pytest.mark.parametrize(
    "diagram", ["", "o--o  text", "<svg", "<html><svg/></html>", '<svg xmlns="urn:other"/>', ENTITY]
)
def test_what_is_no_drawing_is_not_shown(diagram):
    assert embed_supplied_model_picture(diagram, "nothing") == ""
