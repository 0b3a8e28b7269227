"""Recursions become nodes: kinematics of links, articulated bodies (u'), composite bodies (M and f)."""

from mb2fmu.lowering.recursion.evaluation import RecursiveMotion

__all__ = ["RecursiveMotion"]
