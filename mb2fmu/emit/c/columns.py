"""Prints a Jacobian that is too large to be written out: one tangent for each colour of its columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from mb2fmu.emit.c.functions import head
from mb2fmu.emit.c.records import Signature


def jacobian_by_columns(
    *,
    signature: Signature,
    tangent: str,
    memory: int,
    seeds: int,
    colours: Sequence[int],
    places: Sequence[int],
    rows: Sequence[int],
    ends: Sequence[int],
) -> str:
    """The text of the function, tables included; ends with a line break.

    Args:
        signature: Of the function: (t, x, r, p, w, work, values, dfdt).
        tangent: Name of the function for one direction.
        memory: Doubles in ``work`` that it needs.
        seeds: How many it reads: time, states, inputs, parameters.
        colours: Of each state's column.
        places: In ``values`` of each entry that is not zero, colour by colour.
        rows: Of each of these.
        ends: How many of them belong to the colours up to each.
    """
    n = len(colours)
    return f"""{_table("jacobian_colour", colours)}
{_table("jacobian_place", places)}
{_table("jacobian_row", rows)}
{_table("jacobian_end", ends)}
{head("static int", signature.name, signature.parameters)}
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
            values[jacobian_place[k]] = out[jacobian_row[k]];
        }}
    }}
    return failed;
}}
"""


def _table(name: str, values: Sequence[int]) -> str:
    listed = textwrap.fill(", ".join(map(str, values)), 116, initial_indent="    ", subsequent_indent="    ")
    return f"static const int {name}[{len(values)}] = {{\n{listed}\n}};"
