"""Matlab target: equations as functions for MATLAB and GNU Octave, without toolboxes and packages.

Input: ``ScalarProgram`` and ``TargetModelDescription``. Output: ``InMemoryFileTree`` with ``<name>.m``,
which hands out the functions, and ``<name>_experiment.m``, which integrates the default experiment by ``ode45``.

Promises: what is evaluated is the graph, operation by operation; numbers read back to the same bits; functions that
leave their real domain give NaN, never complex numbers. Must not decide anything about variables, and must not change
the equations.
"""

from mb2fmu.targets.matlab.matlab_target_files import emit_matlab_files

__all__ = ["emit_matlab_files"]
