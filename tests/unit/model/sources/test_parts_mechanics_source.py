"""Parts keep their laws, and say in one go what breaks them."""

import pytest
import sympy.physics.mechanics as me

from mb2fmu.errors import ModelError


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"frame": "N"}, "frame is 'N', not a ReferenceFrame"),
        ({"origin": None}, "origin is None, not a Point"),
        ({"q": me.dynamicsymbols("q")}, "q is q(t), not a list"),
        ({"u": ["u"]}, "'u' cannot stand in u"),
        ({"kinematic_equations": ["q' = u"]}, "cannot stand in kinematic_equations"),
        ({"bodies": [me.Point("P")]}, "P cannot stand in bodies"),
        ({"loads": [me.Point("P")]}, "P cannot stand in loads"),
        ({"loads": [(me.Point("P"), 3)]}, "(P, 3) cannot stand in loads"),
        ({"actuators": [1]}, "1 cannot stand in actuators"),
        ({"u_dependent": [me.dynamicsymbols("w")]}, "w(t) stands in u_dependent and not in u"),
    ],
)
def test_what_breaks_the_laws(pendulum, changes, says):
    with pytest.raises(ModelError) as caught:
        pendulum.parts(**changes)
    (fault,) = caught.value.faults
    assert says in fault.what
    assert fault.where.startswith("conftest.py:")
    assert fault.remedy


def test_all_at_once(pendulum):
    with pytest.raises(ModelError) as caught:
        pendulum.parts(frame=1, bodies=[2], loads=[3])
    assert len(caught.value.faults) == 3


def test_forces_and_torques_are_loads(pendulum):
    parts = pendulum.parts()
    loads = [me.Force(pendulum.P, parts.frame.x), me.Torque(pendulum.A, parts.frame.z), (pendulum.bob, 0)]
    assert len(pendulum.parts(loads=loads).loads) == 3
