"""Robot descriptions for tests, small enough to be read."""

from __future__ import annotations

INERTIAL = (
    '<inertial><origin xyz="{x} 0.02 0.15" rpy="0.1 0.2 0.3"/><mass value="{m}"/>'
    '<inertia ixx="0.03" ixy="0.001" ixz="-0.002" iyy="0.04" iyz="0.0015" izz="0.02"/></inertial>'
)


def link(name: str, m: float = 1.0, x: float = 0.01) -> str:
    """A link with mass; a line."""
    return f'<link name="{name}">{INERTIAL.format(m=m, x=x)}</link>\n'


def joint(name: str, kind: str, parent: str, child: str, more: str = "", axis: str = "0 0.6 0.8") -> str:
    """A joint; a line."""
    ends = f'<parent link="{parent}"/><child link="{child}"/><origin xyz="0.1 0 0.3" rpy="0.2 0.3 0"/>'
    return f'<joint name="{name}" type="{kind}">{ends}<axis xyz="{axis}"/>{more}</joint>\n'


def robot(*parts: str, name: str = "test") -> str:
    """A whole file."""
    return f'<?xml version="1.0"?>\n<robot name="{name}">\n{"".join(parts)}</robot>\n'


ARM = robot(
    '<link name="base"/>\n',
    link("l1", 2.0),
    link("l2", 1.5, 0.05),
    link("l3", 0.7),
    link("tool", 0.2),
    link("l4", 0.4),
    joint("j1", "revolute", "base", "l1", '<limit lower="-2" upper="2" effort="50" velocity="9"/>'
          '<dynamics damping="0.3" friction="0.1"/>'),
    joint("j2", "continuous", "l1", "l2", '<dynamics damping="0.1"/>', axis="2 0 0"),
    joint("j3", "prismatic", "l2", "l3", '<limit lower="-9" upper="9" effort="20" velocity="9"/>', axis="0 0 -1"),
    joint("jf", "fixed", "l3", "tool"),
    joint("jm", "revolute", "l3", "l4", '<mimic joint="j1" multiplier="0.5" offset="0.1"/>'
          '<limit lower="-9" upper="9" effort="20" velocity="9"/>', axis="0 1 0"),
)  # fmt: skip
"""A turning, a turning, a sliding joint; a fixed one; one that mimics; nothing along coordinate axes."""

CASE = """<?xml version="1.0"?>
<robot name="arm">
<link name="base"/>
<link name="l1"><inertial>
  <origin xyz="0.01 0.02 0.15" rpy="0.1 0.2 0.3"/><mass value="2.0"/>
  <inertia ixx="0.03" ixy="0.001" ixz="-0.002" iyy="0.04" iyz="0.0015" izz="0.02"/></inertial></link>
<link name="l2"><inertial>
  <origin xyz="0 0.05 0.2" rpy="0 0 0.5"/><mass value="1.5"/>
  <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.025" iyz="0" izz="0.01"/></inertial></link>
<link name="l3"><inertial>
  <origin xyz="0.02 0 0.1"/><mass value="0.7"/>
  <inertia ixx="0.005" ixy="0" ixz="0" iyy="0.006" iyz="0" izz="0.003"/></inertial></link>
<link name="tool"><inertial>
  <origin xyz="0 0 0.03"/><mass value="0.2"/>
  <inertia ixx="0.0003" ixy="0" ixz="0" iyy="0.0003" iyz="0" izz="0.0002"/></inertial></link>
<link name="l4"><inertial>
  <origin xyz="0.1 0 0"/><mass value="0.4"/>
  <inertia ixx="0.001" ixy="0" ixz="0" iyy="0.002" iyz="0" izz="0.002"/></inertial></link>
<joint name="j1" type="revolute"><parent link="base"/><child link="l1"/>
  <origin xyz="0 0 0.1" rpy="0.2 0 0"/>
  <axis xyz="0 0.6 0.8"/>
  <limit lower="-2" upper="2" effort="50" velocity="3"/>
  <dynamics damping="0.3" friction="0.1"/></joint>
<joint name="j2" type="continuous"><parent link="l1"/><child link="l2"/>
  <origin xyz="0.05 0 0.3" rpy="0 0.3 0"/>
  <axis xyz="1 0 0"/>
  <dynamics damping="0.1"/></joint>
<joint name="j3" type="prismatic"><parent link="l2"/><child link="l3"/>
  <origin xyz="0 0 0.4" rpy="0 0 0.7"/>
  <axis xyz="0 0 1"/>
  <limit lower="-0.1" upper="0.2" effort="20" velocity="1"/></joint>
<joint name="jf" type="fixed"><parent link="l3"/><child link="tool"/>
  <origin xyz="0 0.01 0.2" rpy="0.4 0 0"/></joint>
<joint name="jm" type="revolute"><parent link="l3"/><child link="l4"/>
  <origin xyz="0 0 0.15"/>
  <axis xyz="0 1 0"/>
  <mimic joint="{leader}" multiplier="0.5" offset="0.1"/>
  <limit lower="-3" upper="3" effort="5" velocity="9"/></joint>
</robot>
"""
"""The arm of the published accelerations; ``{leader}`` is what its last joint mimics."""
