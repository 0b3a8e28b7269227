"""Modelica target: the equations as one flat model of Modelica 3.6 that needs no library.

Input: ``Program`` and ``ModelFacts`` (variables with units and start values, experiment). Output: ``FileTree`` with
``<Name>.mo``.

Promises: what is written is the graph, one equation per operation that is used; linear systems stand as equations;
numbers read back to the same bits; no events where the unit has none. Must not decide anything about variables, and
must not change the equations; what Modelica's operators cannot say is refused by name.
"""

from mb2fmu.emit.modelica.flat_model import ModelFacts, Quantity, emit

__all__ = ["ModelFacts", "Quantity", "emit"]
