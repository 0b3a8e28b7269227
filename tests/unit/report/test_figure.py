"""The picture for documents."""

from __future__ import annotations

import re

import pytest
from lxml import etree
from representatives import by_night

from mb2fmu.report import draw_validation_figure


@pytest.mark.parametrize("form", ["svg", *by_night("png")])
def test_equal_results_give_equal_pictures(pendulum, form):
    first, second = (draw_validation_figure(pendulum().result, form=form) for _ in range(2))
    assert first == second


def test_the_drawing_is_complete_in_itself(pendulum):
    root = etree.fromstring(draw_validation_figure(pendulum(horizon=1.0).result, ["y1", "y2"], title="two heights"))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    links = [value for e in root.iter() for name, value in e.attrib.items() if name.endswith("href")]
    assert links
    assert all(link.startswith("#") for link in links)
    assert not re.search(r"\d{4}-\d{2}-\d{2}", etree.tostring(root).decode())


def test_a_picture_file(pendulum):
    assert draw_validation_figure(pendulum().result, ["y1"], form="png").startswith(b"\x89PNG")


@pytest.mark.parametrize("names", [["y1", "hinge.angle"], ["y1", "y2", "y3", "y4"]])
def test_one_picture_has_one_unit_and_few_lines(pendulum, names):
    with pytest.raises(ValueError, match="one to three variables of one unit"):
        draw_validation_figure(pendulum(outputs=4).result, names)


def test_unknown_variables_are_named(pendulum):
    with pytest.raises(ValueError, match="not among the compared variables: nothing"):
        draw_validation_figure(pendulum().result, ["nothing"])
