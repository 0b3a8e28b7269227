"""Recursions as nodes: kinematics of links, articulated bodies (u'), composite bodies (M and f).

Input: link relations (``LinkRecursion``) and a program builder. Output: nodes of u', of M and f, and of forces.

Promises: what a link needs of its parent is a node: nothing is expanded over several links.

Must not: know where links come from (SymPy's joints or a robot file), or which states a treatment of loops chooses.
"""

from mb2fmu.compiler.lowering.recursion.link_recursion_lowering import LinkRecursionMotion

__all__ = ["LinkRecursionMotion"]
