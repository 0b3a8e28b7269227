"""Runs the printed code of an FMU in this process, without any binary."""

import dataclasses
import importlib
import sys
import uuid

from mb2fmu.compiler.program.scalar_program import ScalarProgram
from mb2fmu.fmu import emit_python
from mb2fmu.fmu.interface.fmu_interface import FmuInterface


def unit_class(program: ScalarProgram, interface: FmuInterface, folder):
    """The slave class of a unit.

    The interface gets a token of its own first, or Python's table of modules would hand out another test's unit.
    """
    interface = dataclasses.replace(interface, token=str(uuid.uuid4()))
    sources = emit_python.emit_python_fmu_sources(program, interface)
    for path in sources:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(sources[path])
    sys.path.insert(0, str(folder))
    try:
        importlib.invalidate_caches()
        module = importlib.import_module(next(path for path in sources if "/" not in path).removesuffix(".py"))
    finally:
        sys.path.remove(str(folder))
    return module.Unit


def started(cls, start=0.0, stop=None, tolerance=None, **values):
    """An instance after initialization; ``values`` are set by value reference ``v<number>`` before."""
    unit = cls(instance_name="test")
    for name, value in values.items():
        unit.set_real([int(name[1:])], [value])
    unit.setup_experiment(start, stop, tolerance)
    unit.enter_initialization_mode()
    unit.exit_initialization_mode()
    return unit
