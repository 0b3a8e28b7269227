"""JAX target: equations as pure functions of one Python module, for training and for fitting.

Input: ``Program`` and ``JaxModelFacts`` (names, units, start values). Output: ``FileTree`` with ``<name>.py``, which
imports JAX alone. The file is written without JAX.

Promises: what is evaluated is the graph, operation by operation; numbers read back to the same bits; what has no
solution is NaN. Must not decide anything about variables, and must not change the equations.
"""

from mb2fmu.targets.jax.jax_module import JaxModelFacts, emit_jax_module, print_jax_module

__all__ = ["JaxModelFacts", "emit_jax_module", "print_jax_module"]
