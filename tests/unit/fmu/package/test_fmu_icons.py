"""Pictures: drawn from the diagram, the same bytes each time, none distorted."""

import struct

import pytest
from golden.handwritten import native_interface
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from mb2fmu.fmu.package.fmu_icons import make_fmu_pictures

SVG = '<svg viewBox="0 0 200 100"><rect width="200" height="100" fill="red"/><text x="9" y="50">θ</text></svg>'


def size(png):
    """Width and height, from the header."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", png[16:24])


def test_a_drawing_is_used_as_it_is():
    files = make_fmu_pictures(native_interface("3"), SVG)
    icon, drawing = (
        etree.fromstring(files[path]) for path in ("terminalsAndIcons/icon.svg", "documentation/diagram.svg")
    )
    assert drawing.get("viewBox") == icon.get("viewBox") == "0 0 200 100"
    assert (drawing.get("width"), icon.get("width"), icon.get("height")) == (None, "400", "400")
    assert size(files["terminalsAndIcons/icon.png"]) == (400, 400)
    assert size(files["documentation/diagram.png"]) == (1000, 500)


@pytest.mark.parametrize(
    ("shape", "pixels"),
    [
        ('viewBox="0 0 100 200"', (500, 1000)),
        ('viewBox="-9,0,50.0 100" width="50" height="100"', (500, 1000)),
        ('width="300px" height="600"', (500, 1000)),
        ('width="200" height="100"', (1000, 500)),
    ],
)
def test_the_longer_side_of_a_picture_is_a_thousand_pixels(shape, pixels):
    drawing = f'<svg xmlns="http://www.w3.org/2000/svg" {shape}><circle r="5"/></svg>'
    assert size(make_fmu_pictures(native_interface("2"), drawing)["model.png"]) == pixels


def test_an_icon_has_nothing_that_is_too_small_to_be_seen():
    drawing = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 100"><rect width="200" height="100" fill="white"/>'
        '<g font-size="9"><text x="9" y="50">m</text><path d="M0 0L200 100" stroke="red" stroke-width="1.5"/></g>'
        '<path d="M0 100L200 0" stroke="grey" stroke-dasharray="5 4"/>'
        '<path d="M9 9h9" stroke="blue" stroke-width="7"/></svg>'
    )
    files = make_fmu_pictures(native_interface("3"), drawing)
    icon = etree.fromstring(files["terminalsAndIcons/icon.svg"])
    assert not icon.xpath("//*[local-name()='text']")
    assert [path.get("stroke-width") for path in icon.xpath("//*[local-name()='path']")] == ["4.0", "7"]
    assert len(etree.fromstring(files["documentation/diagram.svg"]).xpath("//*[local-name()='path']")) == 3


@pytest.mark.parametrize(
    ("name", "letters"),
    [("DoublePendulum", "Dp"), ("Pendulum", "Pe"), ("chain", "Ch"), ("PUMA560", "Pu"), ("X", "X"), ("two_rods", "Tw")],
)
def test_a_model_without_a_drawing_has_its_initials_for_an_icon(name, letters):
    icon = etree.fromstring(make_fmu_pictures(native_interface("3", model_name=name), "")["terminalsAndIcons/icon.svg"])
    assert icon.xpath("//*[local-name()='text']/text()")[0].casefold() == letters.casefold()


def test_a_size_without_a_view_becomes_one():
    drawing = '<svg xmlns="http://www.w3.org/2000/svg" width="50px" height="20"><circle r="5"/></svg>'
    icon = etree.fromstring(make_fmu_pictures(native_interface("3"), drawing)["terminalsAndIcons/icon.svg"])
    assert icon.get("viewBox") == "0 0 50 20"


def test_fmi_2_has_its_picture_at_the_top():
    assert set(make_fmu_pictures(native_interface("2"), SVG)) == {
        "model.png",
        "terminalsAndIcons/icon.png",
        "terminalsAndIcons/icon.svg",
    }


def test_letters_are_drawn_without_the_systems_fonts():
    blank = SVG.replace("θ", "")
    with_letter = make_fmu_pictures(native_interface("3"), SVG)["documentation/diagram.png"]
    assert with_letter != make_fmu_pictures(native_interface("3"), blank)["documentation/diagram.png"]


@pytest.mark.parametrize(
    "diagram",
    [
        "",
        "o---x\n  | <& θ",
        "<svg",
        "<p>not <svg> at all</p>",
        '<!DOCTYPE svg [<!ENTITY e "x">]><svg xmlns="http://www.w3.org/2000/svg">&e;</svg>',
    ],
)
def test_what_is_no_drawing_becomes_a_card(diagram):
    files = make_fmu_pictures(native_interface("3"), diagram)
    card = etree.fromstring(files["documentation/diagram.svg"])
    words = card.xpath("//*[local-name()='text']/text()")
    assert words[0] == "Pendulum"
    expected = [line for line in diagram.strip("\n").splitlines() if line] or ["a driven pendulum"]
    assert words[1:] == expected
    assert size(files["terminalsAndIcons/icon.png"]) == (400, 400)


@settings(max_examples=8)
@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=30))
def test_any_text_gives_a_picture_and_the_same_each_time(text):
    interface = native_interface("2")
    assert make_fmu_pictures(interface, text) == make_fmu_pictures(interface, text)
