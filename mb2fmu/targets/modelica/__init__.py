"""Modelica target: the equations as one flat model of Modelica 3.6 that needs no library.

Input: ``ScalarProgram`` and ``TargetModelDescription``. Output: ``InMemoryFileTree`` with ``<Name>.mo``, and
``<Name>Flanges.mo`` where terminals are power bonds.

Promises: what is written is the graph, one equation per operation that is used; linear and nonlinear systems stand as
equations, tables as functions; numbers read back to the same bits; events where the model has them. Must not decide
anything about variables, and must not change the equations; what Modelica cannot say is refused by name.
"""

from mb2fmu.targets.modelica.modelica_file import SampledEventTimes, emit_modelica_file
from mb2fmu.targets.modelica.modelica_flanges import TerminalVariables

__all__ = ["SampledEventTimes", "TerminalVariables", "emit_modelica_file"]
