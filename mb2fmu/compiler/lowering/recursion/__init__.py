"""Recursions as nodes: kinematics of links, articulated bodies (u'), composite bodies (M and f)."""

from mb2fmu.compiler.lowering.recursion.recursive_motion import RecursiveMotion

__all__ = ["RecursiveMotion"]
