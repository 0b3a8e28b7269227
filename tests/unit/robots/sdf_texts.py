"""An SDF file for tests, and its twin in MJCF, whose numbers are worked out by hand from the same poses."""

from __future__ import annotations

import numpy as np

from mb2fmu.robots.description.robot_description import rotation_from_roll_pitch_yaw

_INERTIAL = (
    "<inertial><pose>0.1 0.02 0.05 0.1 0.2 0.3</pose><mass>{m}</mass><inertia><ixx>0.03</ixx><ixy>0.001</ixy>"
    "<ixz>-0.002</ixz><iyy>0.04</iyy><iyz>0.0015</iyz><izz>0.02</izz></inertia></inertial>"
)
_TWIN = '<inertial pos="0.1 0.02 0.05" mass="{m}" fullinertia="{inertia}"/>'
_MOMENTS = np.array([[0.03, 0.001, -0.002], [0.001, 0.04, 0.0015], [-0.002, 0.0015, 0.02]])

ARM = f"""<?xml version="1.0"?>
<sdf version="1.9"><world name="w"><gravity>0.5 0 -9</gravity><model name="robot">
  <pose>1 2 3 0.1 0.2 0.3</pose>
  <frame name="shoulder" attached_to="base"><pose>0.1 0 0.3 0.2 0.3 0</pose></frame>
  <link name="base">{_INERTIAL.format(m=3)}</link>
  <joint name="hold" type="fixed"><parent>world</parent><child>base</child></joint>
  <link name="l1"><pose relative_to="shoulder">0 0.1 0 0 0 0.4</pose>{_INERTIAL.format(m=2)}</link>
  <joint name="j1" type="revolute"><pose relative_to="shoulder"/><parent>shoulder</parent><child>l1</child>
    <axis><xyz>0 0.6 0.8</xyz><limit><lower>-2</lower><upper>2e16</upper></limit><dynamics><damping>0.3</damping>
    <spring_stiffness>2</spring_stiffness><spring_reference>0.1</spring_reference></dynamics></axis></joint>
  <link name="l2"><pose relative_to="l1" degrees="true">0.3 0 0 0 30 0</pose>{_INERTIAL.format(m=1)}
    <visual name="v"><pose>0 0 0.1 0 0 0</pose><geometry><box><size>0.1 0.1 0.3</size></box></geometry></visual></link>
  <joint name="cross" type="universal"><parent>l1</parent><child>l2</child>
    <axis><xyz>1 0 0</xyz></axis><axis2><xyz expressed_in="l1">0 0 1</xyz></axis2></joint>
  <link name="l3"><pose relative_to="l2">0 0 0.4 0 0 0</pose>{_INERTIAL.format(m=0.5)}</link>
  <joint name="free" type="ball"><pose>0 0 -0.1 0 0 0</pose><parent>l2</parent><child>l3</child></joint>
  <link name="l4"><pose relative_to="l2" rotation_format="quat_xyzw">0 0.2 0 0 0 0 1</pose>
    {_INERTIAL.format(m=0.4)}</link>
  <joint name="slide" type="prismatic"><parent>l2</parent><child>l4</child><axis><xyz>0 0 -2</xyz>
    <mimic joint="j1" axis="axis"><multiplier>0.5</multiplier><offset>0.2</offset><reference>0.1</reference></mimic>
    <dynamics><damping>0.7</damping></dynamics></axis></joint>
  <frame name="tip" attached_to="l4"><pose>0 0 0.1 0 0 0</pose></frame>
</model></world></sdf>
"""


def twin() -> str:
    """The same robot for MuJoCo."""
    turn = rotation_from_roll_pitch_yaw((0.1, 0.2, 0.3))
    moments = turn @ _MOMENTS @ turn.T
    six = " ".join(f"{moments[i, j]:.17g}" for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))
    inertial = {m: _TWIN.format(m=m, inertia=six) for m in (3, 2, 1, 0.5, 0.4)}
    back = rotation_from_roll_pitch_yaw((0.0, 0.0, 0.4)).T
    anchor, axis = back @ [0, -0.1, 0], back @ [0, 0.6, 0.8]
    across = rotation_from_roll_pitch_yaw((0.0, np.pi / 6, 0.0)).T @ [0, 0, 1]

    def text(vector: np.ndarray) -> str:
        return " ".join(f"{x:.17g}" for x in vector)

    return f"""<mujoco><compiler angle="radian" eulerseq="XYZ"/><option gravity="0.5 0 -9"/><worldbody>
  <body name="base" pos="1 2 3" euler="0.1 0.2 0.3">{inertial[3]}
    <frame pos="0.1 0 0.3" euler="0.2 0.3 0"><body name="l1" pos="0 0.1 0" euler="0 0 0.4">{inertial[2]}
      <joint name="j1" pos="{text(anchor)}" axis="{text(axis)}" damping="0.3" stiffness="2" springref="0.1"/>
      <body name="l2" pos="0.3 0 0" euler="0 {np.pi / 6:.17g} 0">{inertial[1]}
        <joint name="cross_axis" axis="1 0 0"/><joint name="cross_axis2" axis="{text(across)}"/>
        <body name="l3" pos="0 0 0.4">{inertial[0.5]}<joint name="free" type="ball" pos="0 0 -0.1"/></body>
        <body name="l4" pos="0 0.2 0">{inertial[0.4]}
          <joint name="slide" type="slide" axis="0 0 -1" damping="0.7"/></body>
      </body></body></frame></body></worldbody>
  <equality><joint joint1="slide" joint2="j1" polycoef="0.15 0.5 0 0 0"/></equality></mujoco>"""
