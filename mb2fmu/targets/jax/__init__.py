"""JAX target: equations as pure functions of one Python module, for training and for fitting.

Input: ``ScalarProgram`` and ``TargetModelDescription``. Output: ``InMemoryFileTree`` with ``<name>.py``, which imports
JAX alone. The file is written without JAX. Links of long chains become loops by ``lax.scan``
(``repeated_statement_loops``), so that the time to compile does not grow with their number.

Promises: what is evaluated is the graph, operation by operation; numbers read back to the same bits; what has no
solution is NaN. Must not decide anything about variables, and must not change the equations.
"""

from mb2fmu.targets.jax.jax_module import emit_jax_module, print_jax_module

__all__ = ["emit_jax_module", "print_jax_module"]
