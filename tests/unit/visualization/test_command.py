"""``mb2fmu animate``: of a model, of an FMU that carries its scene, of one that does not."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner
from lxml import etree
from mechanisms import lagrangian_with_bodies, moving_pivot
from representatives import by_night

import mb2fmu
from mb2fmu import pipeline, visualization
from mb2fmu.cli import commands
from mb2fmu.errors import ModelError, PackageError
from mb2fmu.fmu import package
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.visualization.animation_page import choose_animation_frames

MODEL = '''
import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model, Parts


def swing() -> Model:
    """A mass on a rod."""
    q, u = me.dynamicsymbols("q u")
    N, A, O = me.ReferenceFrame("N"), me.ReferenceFrame("A"), me.Point("O")
    A.orient_axis(N, N.z, q)
    bob = O.locatenew("bob", -A.y)
    parts = Parts(frame=N, origin=O, q=[q], u=[u], kinematic_equations=[u - q.diff()],
                  bodies=[me.Particle("bob", bob, sm.S(2))], loads=[(bob, -2 * sm.Float(9.81) * N.y)])
    model = Model("Swing", parts)
    model.coordinate(q, 1.0, "rad")
    model.speed(u, 0.0, "rad/s")
    model.output_position("bob", bob)
    model.experiment(stop=1.0, step=0.02, tolerance=1e-9)
    return model
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model file, and its unit of Python code."""
    made = tmp_path_factory.mktemp("swing")
    (made / "swing.py").write_text(MODEL)
    pipeline.export(made / "swing.py", made, backend="python")
    return made


def test_a_fmu_moves_as_its_model_does(folder):
    """Poses from the FMU's own states, by the program that it carries."""
    unit, signals = pipeline.animate(folder / "Swing.fmu")
    model, _ = pipeline.animate(folder / "swing.py")
    np.testing.assert_allclose(unit.poses.positions, model.poses.positions, atol=1e-6)
    assert np.ptp(unit.poses.positions[:, 0, 0]) > 1.5
    assert signals.names == ("q", "u", "bob.x", "bob.y", "bob.z")
    np.testing.assert_allclose(signals.values[:, 2:], unit.poses.positions[:, 0], atol=1e-9)


def test_a_fmu_that_does_not_say_what_it_looks_like_needs_a_model(folder, tmp_path):
    tree = package.read_archive(folder / "Swing.fmu")
    bare = tmp_path / "bare.fmu"
    package.write_fmu_archive(
        InMemoryFileTree({path: tree[path] for path in tree if path != visualization.SCENE_FILE}), bare
    )
    with pytest.raises(PackageError, match=r"does not say what it looks like[\s\S]*--model MODEL.py"):
        pipeline.animate(bare)
    drawing, _ = pipeline.animate(bare, model=folder / "swing.py")
    np.testing.assert_allclose(drawing.poses.positions, drawing.reference_poses.positions, atol=1e-6)


def test_the_command_writes_a_page_and_pictures(folder, tmp_path):
    page, svg, png = (tmp_path / f"swing.{kind}" for kind in ("html", "svg", "png"))
    words = [
        "animate",
        str(folder / "swing.py"),
        "-o",
        page,
        "--svg",
        svg,
        "--png",
        png,
        "--time",
        "0.5",
        "--strobe",
        "3",
    ]
    done = CliRunner().invoke(commands, [*map(str, words), "--plot", "bob.y"])
    assert done.exit_code == 0, done.output
    assert done.output.splitlines() == [f"page: {page}", f"picture: {svg}", f"picture: {png}"]
    assert b'"shown":[3]' in page.read_bytes()
    assert len(etree.parse(str(svg)).getroot().findall("{http://www.w3.org/2000/svg}g")) == 4
    assert png.read_bytes().startswith(b"\x89PNG")
    unknown = CliRunner().invoke(commands, ["animate", str(folder / "swing.py"), "--plot", "nothing", "-o", str(page)])
    assert unknown.exit_code == 2
    assert "no variable nothing" in unknown.output


def test_a_folder_takes_the_page(folder, tmp_path):
    """As ``-o`` of other commands it is made; a file in its place is named, and stays what it was."""
    wanted, taken = tmp_path / "new" / "pages", tmp_path / "taken"
    taken.write_text("mine")
    good, bad = (CliRunner().invoke(commands, ["animate", str(folder / "swing.py"), "-o", str(where)])
                 for where in (wanted, taken))  # fmt: skip
    assert good.exit_code == 0, good.output
    assert [path.name for path in wanted.iterdir()] == ["Swing.html"]
    assert bad.exit_code == 2
    assert str(taken) in " ".join(bad.output.split())
    assert taken.read_text() == "mine"


def test_what_has_nothing_to_draw_is_refused_in_plain_words():
    import sympy.physics.mechanics as me

    q = me.dynamicsymbols("q")
    model = mb2fmu.Model("Alone", me.LagrangesMethod(q.diff() ** 2 / 2, [q]))
    model.coordinate(q, 0.0)
    model.speed(q.diff(), 1.0)
    model.experiment(stop=0.1)
    with pytest.raises(ModelError, match=r"nothing to be drawn[\s\S]*model.place_in"):
        pipeline.animate(model)


def test_a_picture_is_not_written_as_a_page(tmp_path):
    done = CliRunner().invoke(commands, ["animate", "cart_pole", "-o", str(tmp_path / "x.png")])
    assert done.exit_code == 2
    assert f"write --png {tmp_path / 'x.png'}" in " ".join(done.output.split())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("build", [*by_night(moving_pivot), lagrangian_with_bodies])
def test_core_fmus_carry_their_scene_and_the_same_bytes_each_time(build):
    cores = [pipeline.build(pipeline.derive(build()), backend="python").core for _ in range(2)]
    assert cores[0][visualization.SCENE_FILE] == cores[1][visualization.SCENE_FILE]
    scene = visualization.Scene.from_json(cores[0][visualization.SCENE_FILE], "unit")
    assert scene.bodies
    assert len(choose_animation_frames(np.linspace(0, scene.stop, 2000))) > 2


def test_a_film_is_drawn_without_a_browser(scene, motion, tmp_path, monkeypatch):
    """As many pictures as its time needs, which move; other films say what they need."""
    from PIL import Image

    from mb2fmu import visualization
    from mb2fmu.errors import ToolError
    from mb2fmu.pipeline.display import video_rendering

    monkeypatch.setattr(video_rendering, "VIDEO_WIDTH_PIXELS", 160)
    monkeypatch.setattr(video_rendering, "MAX_FRAMES", 5)
    drawing = visualization.draw_motion(scene, motion)
    video_rendering.render_video(drawing, tmp_path / "a.gif")
    with Image.open(tmp_path / "a.gif") as film:
        assert film.n_frames == 5
        first = film.convert("RGB").tobytes()
        film.seek(3)
        assert film.convert("RGB").tobytes() != first
    video_rendering.render_video(drawing, tmp_path / "a.webp", width=80, most=3)
    with Image.open(tmp_path / "a.webp") as small:
        assert (small.n_frames, small.width) == (3, 80)
    monkeypatch.setattr(video_rendering.video_encoding.shutil, "which", lambda _name: None)
    with pytest.raises(ToolError, match="ffmpeg"):
        video_rendering.render_video(drawing, tmp_path / "a.mp4")
    assert not (tmp_path / "a.mp4").exists()
    video_rendering.render_video(drawing, tmp_path / "a.webm", width=80, most=3)
    assert (tmp_path / "a.webm").read_bytes().count(b"\x9d\x01\x2a") == 3  # start codes of VP8 key frames
