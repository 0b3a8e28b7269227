"""Print a Jacobian that is too large to be written out: one tangent for each colour of its columns."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mb2fmu.fmu.emit_c.c_literals import format_array_elements
from mb2fmu.fmu.emit_c.function_signatures import FunctionSignature
from mb2fmu.fmu.emit_c.straight_line_printing import format_function_head


def print_coloured_jacobian(
    *,
    signature: FunctionSignature,
    tangent: str,
    memory: int,
    seeds: int,
    colours: Sequence[int],
    rows: npt.NDArray[np.intp],
    columns: npt.NDArray[np.intp],
) -> str:
    """Return the text of the function, tables included; ends with a line break.

    Args:
        signature: Of the function: (t, x, r, p, w, work, values, dfdt).
        tangent: Name of the function for one direction.
        memory: Doubles in ``work`` that it needs.
        seeds: How many it reads: time, states, inputs, parameters.
        colours: Of each state's column.
        rows: Of each entry that is not zero, row by row.
        columns: Of each of these.
    """
    n = len(colours)
    runs = _consecutive_runs(rows, columns)
    order = sorted(range(n), key=lambda column: (colours[column], column))
    ends = [bisect_right(order, colour, key=colours.__getitem__) for colour in range(max(colours, default=0) + 1)]
    return f"""{_print_integer_table("jacobian_colour", colours)}
{_print_integer_table("jacobian_order", order)}
{_print_integer_table("jacobian_end", ends)}
{_print_integer_table("jacobian_runs", [number for run in runs for number in run])}
{format_function_head(signature.linkage, signature.function, signature.parameters)}
{{
    double *const s = work + {memory};
    double *const out = s + {seeds};
    int k = 0, failed;
    for (int i = 0; i < {seeds}; i++) {{
        s[i] = 0.0;
    }}
    s[0] = 1.0;
    failed = {tangent}(t, x, r, p, w, work, s, out);
    for (int i = 0; i < {n}; i++) {{
        dfdt[i] = out[i];
    }}
    s[0] = 0.0;
    for (int colour = 0; colour < {len(ends)} && failed == 0; colour++) {{
        for (int i = 0; i < {n}; i++) {{
            s[1 + i] = jacobian_colour[i] == colour ? 1.0 : 0.0;
        }}
        failed = {tangent}(t, x, r, p, w, work, s, out);
        for (; k < jacobian_end[colour]; k++) {{
            const int column = jacobian_order[k];
            for (const int *run = jacobian_runs; run < jacobian_runs + {3 * len(runs)}; run += 3) {{
                if (column >= run[1] && column < run[2]) {{
                    values[run[0] * {n} + column] = out[run[0]];
                }}
            }}
        }}
    }}
    return failed;
}}
"""


def _consecutive_runs(rows: npt.NDArray[np.intp], columns: npt.NDArray[np.intp]) -> list[tuple[int, int, int]]:
    """Return runs of neighbours in a row: (row, first column, column behind the last one)."""
    first = np.ones(len(rows), dtype=bool)
    first[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1] + 1)
    last = np.append(first[1:], True)[: len(rows)]
    return list(zip(rows[first].tolist(), columns[first].tolist(), (columns[last] + 1).tolist(), strict=True))


def _print_integer_table(name: str, values: Sequence[int]) -> str:
    """Return the C definition of a constant table of integers."""
    return f"static const int {name}[{len(values)}] = {{\n{format_array_elements(values)}\n}};"
