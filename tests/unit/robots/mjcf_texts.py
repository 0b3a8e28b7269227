"""MJCF files for tests."""

from __future__ import annotations

from pathlib import Path

import mujoco
from lxml import etree

EVERYTHING = """<mujoco model="arm">
  <compiler angle="radian" eulerseq="zYx"/>
  <default>
    <joint damping="0.2" armature="0.01"/>
    <geom density="500"/>
    <motor ctrlrange="-2 2"/>
    <default class="soft">
      <joint stiffness="3" springref="0.2" range="-2 2"/>
      <default class="slab"><geom type="box" size="0.1 0.05 0.02"/></default>
    </default>
  </default>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body name="a" pos="0 0 1" euler="0.1 0.2 0.3">
      <joint name="j1" axis="0 1 1" pos="0.1 0 0.02" ref="0.3"/>
      <joint name="j2" type="slide" axis="1 0 0.2" class="soft"/>
      <geom type="capsule" size="0.05" fromto="0 0 0 0.4 0.1 0"/>
      <frame pos="0 0.1 0" axisangle="1 0 0 0.2">
        <geom type="ellipsoid" size="0.05 0.1 0.2" pos="0.1 0 0" mass="0.4" axisangle="1 1 0 0.4"/>
      </frame>
      <body name="b" pos="0.4 0 0" childclass="slab">
        <joint name="j3" type="ball" armature="0.02" stiffness="0" limited="false"/>
        <geom/>
        <geom type="cylinder" size="0.05 0.2" xyaxes="1 1 0 0 0 1"/>
        <site name="tip" pos="0.1 0 0"/>
        <body name="c" pos="0.3 0 0" quat="1 0.2 0 0">
          <joint axis="0 0 1" pos="0.1 0.2 0.3" name="j4" frictionloss="0.2"/>
          <inertial pos="0.1 0 0" mass="0.5" fullinertia="0.01 0.02 0.015 0.001 0.002 0.003"/>
        </body>
      </body>
    </body>
    <body name="d" pos="0.2 0.3 2" zaxis="0 1 1">
      <freejoint/>
      <geom type="sphere" size="0.1" pos="0.1 0 0"/>
      <geom type="box" size="0.1" fromto="0 0 0 0.1 0.2 0.4"/>
      <body pos="0 0 0.3">
        <joint name="j5" axis="1 0 0" ref="0.1" frictionloss="0.3"/>
        <geom type="cylinder" size="0.05" fromto="0 0 0 0 0 0.3"/>
        <body><joint name="j6" ref="0.4"/><geom size="0.03" pos="0.1 0 0"/></body>
      </body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="t" stiffness="4" damping="0.3"><joint joint="j1" coef="0.5"/><joint joint="j5" coef="-2"/></fixed>
    <fixed name="slack" stiffness="4" springlength="0.1 0.3"><joint joint="j4" coef="1.5"/></fixed>
  </tendon>
  <equality>
    <joint joint1="j5" joint2="j4" polycoef="0.2 0.7 0 0 0"/>
    <joint joint1="j6" polycoef="0.25"/>
  </equality>
  <actuator>
    <motor name="m1" joint="j1" gear="20"/>
    <position name="p2" joint="j2" kp="30" kv="2"/>
    <velocity joint="j4" kv="5" gear="2" forcerange="-3 3"/>
    <general name="g" tendon="t" gainprm="3" biastype="affine" biasprm="0.1 -2 -0.2"/>
  </actuator>
</mujoco>
"""
"""Every element that is honoured."""

DEGREES = """<mujoco>
  <compiler autolimits="false" inertiafromgeom="true" inertiagrouprange="0 1" settotalmass="3" boundmass="0.1"
            boundinertia="0.002" balanceinertia="true"/>
  <option gravity="1 0 -9"><flag contact="disable"/></option>
  <worldbody>
    <body euler="20 30 40">
      <joint type="slide" axis="1 0 0" ref="0.2" range="-1 1" limited="true" actuatorfrcrange="-1 1"
             actuatorfrclimited="true"/>
      <joint axis="0 0 1" range="-40 60" limited="true" springref="20" stiffness="2"/>
      <inertial pos="9 9 9" mass="9" diaginertia="9 9 9"/>
      <geom type="box" size="0.1 0.2 0.3" axisangle="0 0 1 45" group="1"/>
      <geom type="box" size="1 2 3" group="2"/>
      <body pos="0.2 0 0" name="light"><joint axis="1 1 0"/><geom size="0.01"/></body>
    </body>
  </worldbody>
  <actuator><motor joint="push" gear="3"/></actuator>
</mujoco>
""".replace('type="slide"', 'name="push" type="slide"')
"""Nameless things, degrees, and what a compiler does to masses."""

_NOT_HONOURED = (
    "equality/weld", "tendon/spatial", "sensor", "actuator/*[@tendon='spatial']", "actuator/intvelocity",
    "actuator/general",
)  # fmt: skip


LEG = """<mujoco>
  <default><joint armature="0.02" damping="0.5"/></default>
  <worldbody><body name="torso" pos="0 0 1.3"><freejoint name="root"/>
    <geom type="capsule" size="0.07" fromto="0 -0.07 0 0 0.07 0"/>
    <body name="thigh" pos="0 -0.1 -0.1">
      <joint name="hx" axis="1 0 0"/><joint name="hz" axis="0 0.2 1"/><joint name="hy" axis="0 1 0"/>
      <geom type="capsule" size="0.06" fromto="0 0 0 0 0.01 -0.34"/>
      <body name="shin" pos="0 0.01 -0.4"><joint name="knee" axis="0 -1 0"/>
        <geom type="capsule" size="0.05" fromto="0 0 0 0 0 -0.3"/></body>
    </body>
    <body name="arm" pos="0 0.2 0.1"><joint name="s1" axis="2 1 1"/><joint name="s2" axis="0 -1 1"/>
      <geom type="capsule" size="0.04" fromto="0 0 0 0.16 0.16 -0.16"/></body>
  </body></worldbody>
</mujoco>
"""
"""A torso that flies, with a hip of three hinges, a knee and a shoulder of two, a rotor at each."""


def mujoco_test_model() -> bytes:
    """The model that MuJoCo's package carries for its own tests."""
    return (Path(mujoco.__file__).parent / "testdata" / "model.xml").read_bytes()


def honoured_part_of(content: bytes) -> bytes:
    """That model without what is refused: fluid, spatial tendon, weld, filters."""
    root = etree.fromstring(content)
    for path in _NOT_HONOURED:
        for element in root.findall(path):
            element.getparent().remove(element)
    for key in ("density", "viscosity", "wind"):
        del root.find("option").attrib[key]
    del root.find("worldbody/body[@gravcomp]").attrib["gravcomp"]
    root.remove(root.find("keyframe"))
    return etree.tostring(root)
