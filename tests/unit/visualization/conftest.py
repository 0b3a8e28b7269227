"""A mechanism with everything that can be drawn, and its motion."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from mechanisms import cart_with_pathways

from mb2fmu import visualization
from mb2fmu.mechanics.formulations import check_applicability_of_all_formulations, formulate
from mb2fmu.mechanics.mechanism import read_mechanism
from mb2fmu.model import Box, Cylinder, Ellipsoid, Mesh, Sphere, check_model
from mb2fmu.pipeline.fmu_build import model_scene

STL = b"""solid tetrahedron
facet normal 0 0 -1
outer loop
vertex 0 0 0
vertex 0 1 0
vertex 1 0 0
endloop
endfacet
facet normal 0 -1 0
outer loop
vertex 0 0 0
vertex 1 0 0
vertex 0 0 1
endloop
endfacet
facet normal -1 0 0
outer loop
vertex 0 0 0
vertex 0 0 1
vertex 0 1 0
endloop
endfacet
facet normal 1 1 1
outer loop
vertex 1 0 0
vertex 0 1 0
vertex 0 0 1
endloop
endfacet
endsolid tetrahedron
"""


def dressed(folder=None):
    """The cart with a pendulum, springs and actuators, wearing one of each shape, a path and two arrows."""
    model = cart_with_pathways()
    system = model.mechanics
    cart, bob = system.bodies[1:]
    l = sm.Symbol("l")
    model.visual(cart, Box(0.4, 0.2, 0.3), color="#336699")
    model.visual(cart, Sphere(0.05), at=0.1 * cart.x)
    model.visual(bob, Cylinder(l / 2, 0.03), along=bob.x - bob.y, opacity=0.6)
    model.visual(bob, Ellipsoid(0.1, 0.2, 0.3), at=bob.masscenter)
    model.visual(system.frame, Box(5, 0.02, 1), at=system.fixed_point)
    if folder is not None:
        (folder / "part.stl").write_bytes(STL)
        model.visual(bob, Mesh(folder / "part.stl", 0.2))
    model.trace(bob.masscenter, color="#00aa00")
    model.arrow(system.loads[1])
    model.arrow(system.actuators[4], color="#112233")
    model.arrow((bob.masscenter, 3 * bob.x + me.dynamicsymbols("v") * cart.y), scale=0.1)
    return model


@pytest.fixture(scope="session")
def scene_of():
    """A model → its scene."""

    def made(model):
        mechanism = read_mechanism(check_model(model))
        quick = check_applicability_of_all_formulations(mechanism)["recursive-composite"].is_applicable
        return model_scene.build_model_scene(
            mechanism, formulate(mechanism, "recursive-composite" if quick else "auto")
        )

    return made


@pytest.fixture(scope="session")
def scene(scene_of, tmp_path_factory):
    return scene_of(dressed(tmp_path_factory.mktemp("meshes")))


@pytest.fixture(scope="session")
def wander():
    return _wandering


def _wandering(scene, count=40):
    """A motion through states that nothing integrated: pictures do not care."""
    time = np.linspace(0.0, 2.0, count)
    start = np.array([state.start for state in scene.states])
    states = start + 0.8 * np.sin(time[:, None] * np.arange(1, len(start) + 1))
    inputs = np.tile([signal.start for signal in scene.inputs], (count, 1)).reshape(count, len(scene.inputs))
    return visualization.StateTrajectory(time, states, inputs, np.array([p.start for p in scene.parameters]))


@pytest.fixture
def motion(scene):
    return _wandering(scene)


@pytest.fixture
def drawing(scene, motion):
    return visualization.draw_motion(scene, motion)


@pytest.fixture
def browser(tmp_path):
    name = shutil.which("chromium") or shutil.which("chromium-browser")
    if name is None:
        pytest.skip("chromium is not installed on this machine")

    def run(page, *options, fragment="", size="900,900", patience=1000, clean=True):
        (tmp_path / "page.html").write_bytes(page)
        command = [name, "--headless=new", "--no-sandbox", "--no-first-run", "--disable-sync", "--hide-scrollbars"]
        command += ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", f"--window-size={size}"]
        command += ["--disable-background-networking", "--disable-component-update"]
        command += ["--disable-gpu-rasterization"]  # without a graphics card it takes seconds to compile what draws so
        if "play" not in fragment and not any(option.startswith("--screenshot") for option in options):
            # A page that stands, and is not photographed, takes half of the time so; the driver says that this stalls.
            command += ["--disable-gpu-compositing"]
        command += [f"--user-data-dir={tmp_path / 'user'}", f"--virtual-time-budget={patience}"]
        command += ["--enable-logging=stderr", "--v=0", *options, (tmp_path / "page.html").as_uri() + fragment]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        said = [line for line in done.stderr.splitlines() if "CONSOLE" in line and "GL Driver Message" not in line]
        assert not clean or not said, said
        return done.stdout

    return run
