"""CasADi target: x' and the outputs with first and second derivatives, for ``casadi.external``.

Input: ``ScalarProgram`` and ``TargetModelDescription``. Output: ``InMemoryFileTree`` with ``<name>_rhs.c`` and
``<name>_outputs.c``, in CasADi's interface of external functions, and ``runtime/``, which they include.

Promises: the same arithmetic as the FMU's; derivatives are exact, and sparse; functions keep no memory, so they may be
called from several threads. Must not decide anything about variables, and must not change the equations.
"""

from mb2fmu.targets.casadi.casadi_target_files import emit_casadi_files

__all__ = ["emit_casadi_files"]
