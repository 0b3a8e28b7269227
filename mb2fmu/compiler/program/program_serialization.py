"""A Program as plain lists and mappings for JSON, and back; nothing in it is ever executed as code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from mb2fmu.compiler.program.scalar_program import (
    EquationSolveBlock,
    Op,
    PiecewisePolynomial,
    ProgramEntryPoint,
    ProgramVariableLayout,
    ScalarizedLinearSystem,
    ScalarProgram,
)

PROGRAM_RECORD_VERSION = 1


def convert_program_to_record(program: ScalarProgram) -> dict[str, Any]:
    """Return the program by its fields; operations by their names, so that their numbers may change."""
    record = {
        "version": PROGRAM_RECORD_VERSION,
        "layout": {field.name: list(getattr(program.layout, field.name)) for field in fields(ProgramVariableLayout)},
        "operations": [op.name for op in Op],
        "op": program.op.tolist(),
        "a": program.a.tolist(),
        "b": program.b.tolist(),
        "c": program.c.tolist(),
        "constants": [float(value).hex() for value in program.constants],
        "blocks": [_record_fields(block) for block in program.blocks],
        "systems": [_record_fields(system) for system in program.systems],
        "tables": [_record_fields(table) for table in program.tables],
        "entries": {name: [list(entry.labels), list(entry.results)] for name, entry in program.entries.items()},
    }
    if program.bodies:
        record["bodies"] = [convert_program_to_record(body) for body in program.bodies]
    return record


def restore_program_from_record(record: Mapping[str, Any]) -> ScalarProgram:
    """Return the program of :func:`convert_program_to_record`.

    Raises:
        ValueError: If the record is of another version, or breaks a law of programs.
    """
    if record.get("version") != PROGRAM_RECORD_VERSION:
        raise ValueError(f"a program of version {record.get('version')}, not {PROGRAM_RECORD_VERSION}")
    try:
        known = np.array([int(Op[name]) for name in record["operations"]], dtype=np.uint8)
        return ScalarProgram(
            layout=ProgramVariableLayout(**{name: tuple(labels) for name, labels in record["layout"].items()}),
            op=known[np.array(record["op"], dtype=np.intp)],
            a=np.array(record["a"], dtype=np.int32),
            b=np.array(record["b"], dtype=np.int32),
            c=np.array(record["c"], dtype=np.int32),
            constants=np.array([float.fromhex(text) for text in record["constants"]], dtype=np.float64),
            blocks=tuple(EquationSolveBlock(**_restore_tuples(block)) for block in record["blocks"]),
            systems=tuple(ScalarizedLinearSystem(**_restore_tuples(system)) for system in record.get("systems", ())),
            tables=tuple(PiecewisePolynomial(**_restore_tuples(table)) for table in record["tables"]),
            entries={
                name: ProgramEntryPoint(name, tuple(labels), tuple(results))
                for name, (labels, results) in record["entries"].items()
            },
            bodies=tuple(restore_program_from_record(body) for body in record.get("bodies", ())),
        )
    except (KeyError, TypeError, IndexError, AssertionError, OverflowError) as error:
        raise ValueError(f"no program: {type(error).__name__} {error}") from error


def _record_fields(record: Any) -> dict[str, Any]:
    """Return a record's fields as lists and numbers that JSON can hold."""
    return {field.name: _tuples_to_lists(getattr(record, field.name)) for field in fields(record)}


def _tuples_to_lists(value: Any) -> Any:
    """Turn tuples into lists, at every depth; leave anything else."""
    return [_tuples_to_lists(item) for item in value] if isinstance(value, tuple) else value


def _restore_tuples(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a record read from JSON, with lists as tuples again."""
    return {name: _lists_to_tuples(value) for name, value in record.items()}


def _lists_to_tuples(value: Any) -> Any:
    """Turn lists into tuples, at every depth; leave anything else."""
    return tuple(_lists_to_tuples(item) for item in value) if isinstance(value, list) else value
