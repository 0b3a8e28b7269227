"""MuJoCo's own small models, typed again without contact: x' against MuJoCo at random states."""

from __future__ import annotations

from pathlib import Path

import pytest
from unit.robots.test_robot_equations import worst_against_second_reading

from mb2fmu.validation.source_checks import source_acceleration_samples

PENDULUM = """<mujoco model="inverted pendulum">
  <compiler inertiafromgeom="true"/>
  <default><joint armature="0" damping="1" limited="true"/><geom contype="0" friction="1 0.1 0.1"/></default>
  <worldbody>
    <geom name="rail" pos="0 0 0" quat="0.707 0 0.707 0" size="0.02 1" type="capsule"/>
    <body name="cart" pos="0 0 0">
      <joint axis="1 0 0" name="slider" range="-1 1" type="slide"/>
      <geom pos="0 0 0" quat="0.707 0 0.707 0" size="0.1 0.1" type="capsule"/>
      <body name="pole" pos="0 0 0">
        <joint axis="0 1 0" name="hinge" pos="0 0 0" range="-90 90" type="hinge"/>
        <geom fromto="0 0 0 0.001 0 0.6" size="0.049 0.3" type="capsule"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor ctrllimited="true" ctrlrange="-3 3" gear="100" joint="slider" name="slide"/></actuator>
</mujoco>"""

CARTPOLE = """<mujoco model="two poles">
  <default><default class="pole"><joint type="hinge" axis="0 1 0" damping="2e-6"/>
    <geom type="capsule" fromto="0 0 0 0 0 1" size="0.045" mass="0.1"/></default></default>
  <worldbody>
    <body name="cart" pos="0 0 1">
      <joint name="slider" type="slide" axis="1 0 0" limited="true" range="-1.8 1.8" damping="5e-4"/>
      <geom type="box" size="0.2 0.15 0.1" mass="1"/>
      <body name="pole_1" childclass="pole">
        <joint name="hinge_1"/><geom/>
        <body name="pole_2" pos="0 0 1"><joint name="hinge_2"/><geom/></body>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="slide" joint="slider" gear="10" ctrlrange="-1 1"/></actuator>
</mujoco>"""

HOPPER = """<mujoco model="hopper">
  <compiler angle="degree"/>
  <default><joint damping="1" armature="1"/><geom density="1000"/></default>
  <worldbody>
    <body name="torso" pos="0 0 1.25">
      <joint armature="0" axis="1 0 0" damping="0" name="rootx" type="slide"/>
      <joint armature="0" axis="0 0 1" damping="0" name="rootz" ref="1.25" type="slide"/>
      <joint armature="0" axis="0 1 0" damping="0" name="rooty" type="hinge"/>
      <geom fromto="0 0 0.2 0 0 -0.2" size="0.05" type="capsule"/>
      <body name="thigh" pos="0 0 -0.2">
        <joint axis="0 -1 0" name="thigh" range="-150 0"/>
        <geom fromto="0 0 0 0 0 -0.45" size="0.05" type="capsule"/>
        <body name="leg" pos="0 0 -0.7">
          <joint axis="0 -1 0" name="leg" pos="0 0 0.25" range="-150 0"/>
          <geom fromto="0 0 0.25 0 0 -0.25" size="0.04" type="capsule"/>
          <body name="foot" pos="0.065 0 -0.35">
            <joint axis="0 -1 0" name="foot" pos="-0.065 0 0.1" range="-45 45" stiffness="3" springref="10"/>
            <geom fromto="-0.13 0 0.1 0.26 0 0.1" size="0.06" type="capsule"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator><motor gear="200" joint="thigh"/><motor gear="200" joint="leg"/><motor gear="200" joint="foot"/></actuator>
</mujoco>"""

BALLS = """<mujoco model="humanoid of balls">
  <default><joint damping="0.2" armature="0.007"/><geom type="capsule" size="0.04"/></default>
  <worldbody>
    <body name="torso" pos="0 0 1.4">
      <freejoint name="root"/>
      <geom fromto="0 -.07 0 0 .07 0" size="0.07"/><geom type="sphere" pos="0 0 .19" size="0.09"/>
      <body name="waist" pos="-.01 0 -.26" quat="1 0 -0.002 0">
        <joint name="abdomen" type="ball"/><geom fromto="0 -.06 0 0 .06 0" size="0.06"/>
        <body name="right_thigh" pos="0 -.1 -.04">
          <joint name="right_hip" type="ball"/><geom fromto="0 0 0 0 .01 -.34"/>
          <body pos="0 .01 -.403"><joint name="right_knee" axis="0 -1 0"/><geom fromto="0 0 0 0 0 -.3"/></body>
        </body>
        <body name="left_thigh" pos="0 .1 -.04">
          <joint name="left_hip" type="ball"/><geom fromto="0 0 0 0 -.01 -.34"/>
          <body pos="0 -.01 -.403"><joint name="left_knee" axis="0 -1 0"/><geom fromto="0 0 0 0 0 -.3"/></body>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="hamstrings" stiffness="6" springlength="0.1" damping="0.4">
      <joint joint="right_knee" coef="0.5"/><joint joint="left_knee" coef="-0.7"/></fixed>
  </tendon>
</mujoco>"""

FOUR_BAR = """<mujoco model="four bar">
  <default><geom type="capsule" size="0.02" mass="0.6"/><joint axis="0 1 0" damping="0.05"/></default>
  <worldbody>
    <body name="crank"><joint name="crank"/><geom fromto="0 0 0 0 0 0.3"/>
      <body name="coupler" pos="0 0 0.3"><joint name="coupler"/><geom fromto="0 0 0 0.6 0 0.1"/></body>
    </body>
    <body name="rocker" pos="0.6 0 0"><joint name="rocker"/><geom fromto="0 0 0 0 0 0.4"/></body>
  </worldbody>
  <equality><connect body1="coupler" body2="rocker" anchor="0.6 0 0.1"/></equality>
  <actuator><motor joint="crank" gear="2"/></actuator>
</mujoco>"""

MODELS = {"pendulum": PENDULUM, "cartpole": CARTPOLE, "hopper": HOPPER, "balls": BALLS, "four bar": FOUR_BAR}


@pytest.mark.parametrize("name", list(MODELS))
def test_it_moves_as_in_mujoco(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_acceleration_samples, "RANDOM_POINT_COUNT", 30)
    path = tmp_path / "robot.xml"
    path.write_text(MODELS[name])
    assert worst_against_second_reading(path) < 0.1
