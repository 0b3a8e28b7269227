"""The page with the animation: closed to the outside, small, alive in a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from animation_channels import decode_animation_channels
from lxml import etree, html

from mb2fmu import visualization
from mb2fmu.errors import ToolError
from mb2fmu.visualization import three_js
from mb2fmu.visualization.animation_page import choose_animation_frames
from mb2fmu.visualization.scene.triangle_meshes import TriangleMesh

HOSTILE = '</script><script>alert("1")</script>&<img src=https://evil.example/x onerror=alert(1)>'


def signals_of(scene, motion):
    return visualization.PlotSignals(
        tuple(s.name for s in scene.states), tuple(s.unit for s in scene.states), motion.states
    )


def parse(page):
    """As XML, which forgives nothing, scripts aside; HTML's void elements are closed for that."""
    text = re.sub(r"(<script[^>]*>).*?(</script>)", r"\1\2", page.decode(), flags=re.DOTALL)
    text = re.sub(r"<(meta)\b([^>]*)>", r"<\1\2/>", text.removeprefix("<!doctype html>\n"))
    return etree.fromstring(text)


def test_three_js_is_the_library_alone_with_its_licence():
    text = three_js.read_three_js_source()
    assert text.startswith("/**\n * @license\n * Copyright 2010-")
    assert "SPDX-License-Identifier: MIT" in text[:200]
    assert "GLTFLoader" not in text
    assert len(three_js.load_three_js().compressed_base64) < 230_000
    assert text.count("</script") == 0


def test_a_trimesh_without_it_is_named(monkeypatch):
    monkeypatch.setattr(three_js, "_MEMBER", "elsewhere.html")
    with pytest.raises(ToolError, match=r"three\.js cannot be taken"):
        three_js.read_three_js_source()


def test_nothing_is_loaded_and_only_two_known_scripts_run(scene, motion, drawing):
    page = visualization.render_animation_page(
        replace(drawing, name=HOSTILE), signals_of(scene, motion), description=HOSTILE
    )
    root = parse(page)
    assert root.findtext(".//h1") == HOSTILE
    scripts = root.findall(".//script")
    assert [s.get("type") for s in scripts] == ["application/json", "application/octet-stream", None]
    for element in root.iter():
        assert not any(name.startswith("on") or name in {"src", "href", "srcset"} for name in element.attrib)
    policy = root.find(".//meta[@http-equiv]").get("content")
    assert policy.startswith("default-src 'none'")
    script = re.findall(r"<script>(.*?)</script>", page.decode(), flags=re.DOTALL)
    assert len(script) == 1
    digests = {
        base64.b64encode(hashlib.sha256(t.encode()).digest()).decode()
        for t in (script[0], three_js.read_three_js_source())
    }
    assert set(re.findall(r"'sha256-([^']+)'", policy)) == digests
    assert "'unsafe-inline'" not in policy.split("script-src")[1]


def test_the_same_motion_gives_the_same_page(scene, motion, drawing):
    assert visualization.render_animation_page(drawing) == visualization.render_animation_page(
        visualization.draw_motion(scene, motion)
    )


def data_of(page):
    text = re.search(r'class="animation-data">(.*?)</script>', page.decode(), flags=re.DOTALL)[1]
    return json.loads(text)


def test_frames_are_as_many_as_a_screen_shows_and_as_fit(scene, wander):
    """Whatever the number of points: 60 per second of motion, first and last among them; fewer where a limit is."""
    assert len(choose_animation_frames(np.linspace(0, 10, 100_000))) == 601
    assert len(choose_animation_frames(np.linspace(0, 0.15, 100_000))) == 240
    assert len(choose_animation_frames(np.linspace(0, 2, 30))) == 30
    assert choose_animation_frames(np.linspace(0, 1000, 100_000))[[0, -1]].tolist() == [0, 99_999]
    assert len(choose_animation_frames(np.linspace(0, 1000, 100_000))) == 4000
    motion = wander(scene, 1500)
    motion = replace(motion, time=50 * motion.time)
    drawing = visualization.draw_motion(scene, motion, replace(motion, states=1.1 * motion.states))
    whole = visualization.render_animation_element(drawing).body.encode()
    small = visualization.render_animation_element(drawing, limit=len(whole) - 20_000).body.encode()
    assert len(small) <= len(whole) - 20_000
    assert data_of(whole)["count"] == 1500
    assert 200 < data_of(small)["count"] < 1500
    assert data_of(small)["time"][-1] == data_of(whole)["time"][-1]


@pytest.mark.parametrize("size", [1e-2, 1e-9])
def test_a_difference_too_small_for_a_picture_can_be_magnified(scene, motion, size):
    """The overlay travels as its difference, in steps of its own: 1e-9 beside metres is there to five digits."""
    moved = replace(motion, states=motion.states + size * np.cos(motion.time)[:, None])
    drawing = visualization.draw_motion(scene, motion, moved)
    flipped = replace(drawing.reference_poses, turns=-drawing.reference_poses.turns)  # the same rotations
    page = visualization.render_animation_page(replace(drawing, reference_poses=flipped))
    apart = decode_animation_channels(data_of(page)["apart"], len(motion.time)).reshape(len(motion.time), -1, 7)
    expected = np.concatenate(
        [
            drawing.reference_poses.positions - drawing.poses.positions,
            drawing.reference_poses.turns - drawing.poses.turns,
        ],
        axis=2,
    )
    assert 0.1 * size < np.max(np.abs(expected)) < 10 * size
    np.testing.assert_allclose(apart, expected, atol=4e-5 * np.max(np.abs(expected)))
    assert b'data-part="apart"' in page
    assert b'data-part="apart"' not in visualization.render_animation_page(visualization.draw_motion(scene, motion))


def test_surfaces_are_thinned_where_a_limit_is_and_the_page_says_so(scene, motion):
    """A sphere of 20,480 triangles in a page that has no room for it; its size stays."""
    import trimesh

    sphere = trimesh.creation.icosphere(subdivisions=5, radius=0.2)
    mesh = TriangleMesh(sphere.vertices.astype(np.float32), sphere.faces.astype(np.uint32))
    drawing = replace(visualization.draw_motion(scene, motion), meshes=(mesh,))
    whole = visualization.render_animation_element(drawing).body.encode()
    small = visualization.render_animation_element(drawing, limit=len(whole) - 300_000).body.encode()
    assert len(small) <= len(whole) - 300_000
    kept = TriangleMesh.from_record(data_of(small)["meshes"][0])
    assert 500 < len(kept.faces) < 20_480
    np.testing.assert_allclose(np.ptp(kept.vertices, axis=0), 0.4, rtol=0.1)
    assert f"{len(kept.faces):,} of their 20,480 triangles" in small.decode()
    assert b"animation-note" not in whole


def test_a_plot_offers_what_is_to_be_shown_and_the_first_others(motion, drawing):
    names = tuple(f"y{k}" for k in range(100))
    signals = visualization.PlotSignals(names, ("m",) * 100, np.outer(motion.time, np.arange(100)))
    data = data_of(visualization.render_animation_page(drawing, signals, shown=("y90", "y7")))["signals"]
    assert data["names"] == [*names[:23], "y90"]
    assert [data["names"][k] for k in data["shown"]] == ["y90", "y7"]
    assert data["values"]["ranges"][-1] == [0, 180]


def test_in_a_browser_time_goes_on_and_bodies_move(scene, motion, browser, tmp_path):
    """Opened at a time, it shows that time; played, the clock runs on: names beside bodies and the plot's cursor move.

    So do pixels of the canvas, many of which are not paper.
    """
    from PIL import Image

    motion = replace(motion, time=20.0 * motion.time)  # longer than the browser looks at it
    drawing = visualization.draw_motion(scene, motion, replace(motion, states=motion.states * 1.05))
    page = visualization.render_animation_page(drawing, signals_of(scene, motion)).replace(
        b'data-part="names"', b'data-part="names" checked="checked"'
    )
    page = page.replace(b' data-part="labels" hidden="hidden"', b' data-part="labels"')
    seen, pictures = [], []
    for fragment, opened in (("#t=4&pause", 4.0), ("#t=30&play", 30.0)):
        file = tmp_path / f"{opened}.png"
        shown = html.fromstring(
            browser(page, "--dump-dom", f"--screenshot={file}", fragment=fragment, size="860,560", patience=1000)
        )
        root = shown.find_class("animation")[0]
        assert root.get("data-state") == "ready"
        t = float(root.get("data-time"))
        assert t > opened if "play" in fragment else t == pytest.approx(opened)
        labels = shown.find_class("animation-labels")[0].findall("span")
        assert [label.text for label in labels] == ["cart", "bob"]
        cursor = shown.find_class("cursor")[0].get("transform")
        seen.append([*(label.get("style") for label in labels), cursor])
        with Image.open(file) as image:
            pictures.append(np.asarray(image.convert("RGB"), dtype=int)[110:500, 60:800])
    assert all(a != b for a, b in zip(*seen, strict=True))
    paper = pictures[0][5, 5]
    assert np.mean(np.abs(pictures[0] - paper).max(axis=2) > 24) > 0.01
    assert np.mean(np.abs(pictures[0] - pictures[1]).max(axis=2) > 24) > 0.003


def test_without_a_graphics_card_the_still_is_shown(drawing, browser):
    shown = html.fromstring(
        browser(visualization.render_animation_page(drawing), "--dump-dom", "--disable-3d-apis", clean=False)
    )
    assert shown.find_class("animation")[0].get("data-state") == "failed"
    assert "cannot be shown here" in shown.find_class("animation-still")[0].text_content()
    assert len(shown.find_class("still")) == 1
