"""A study by options: the same plan that a file describes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from mb2fmu.analysis.studies.study_plan import DIRECTIONS, METHODS, TAKES

Command = TypeVar("Command", bound=Callable[..., Any])

SPREAD, COUNT = 0.1, 100
"""Where nothing is said: parameters vary by ± 10 % in 100 cases."""


def _number(text: str) -> float | str:
    """Return a number, or text with a unit that is looked at later."""
    try:
        return float(text)
    except ValueError:
        return text.strip()


def _vary(_ctx: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, Any]:
    """Return NAME=FROM:TO, NAME=FROM:TO:COUNT or NAME=VALUE,VALUE,… as a plan has it."""
    found: dict[str, Any] = {}
    wrong = []
    for text in values:
        name, sign, given = text.partition("=")
        name = name.strip()
        ends = given.split(":")
        parts = given.split(",") if len(ends) == 1 else ends
        if not (sign and name) or name in found or len(ends) > 3 or not all(part.strip() for part in parts):
            wrong.append(text)
        elif len(ends) == 1:
            found[name] = {"values": [_number(part) for part in parts]}
        else:
            found[name] = {"from": _number(ends[0]), "to": _number(ends[1])}
            if len(ends) == 3:
                found[name]["count"] = int(ends[2]) if ends[2].strip().isdecimal() else ends[2]
    if wrong:
        raise click.BadParameter(
            f"{', '.join(wrong)}: write NAME=FROM:TO, or for a grid NAME=FROM:TO:COUNT or NAME=VALUE,VALUE; "
            "as in --vary m2=0.5:2 or --vary 'angle=10 deg:60 deg'; each name once"
        )
    return found


def _pairs(_ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, float | str]:
    """Return NAME=VALUE pairs, values as numbers or as text with a unit (click's callback)."""
    pairs = [text.partition("=") for text in values]
    wrong = [text for text, (name, sign, value) in zip(values, pairs, strict=True) if not (sign and name and value)]
    if wrong:
        raise click.BadParameter(f"{', '.join(wrong)}: write {parameter.metavar}")
    return {name.strip(): _number(value) for name, _, value in pairs}


def _results(_ctx: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, Any]:
    """Return what each result reads and takes, by its text: NAME, NAME:TAKE, NAME:first-crossing=LEVEL:rising."""
    found: dict[str, Any] = {}
    for text in values:
        rest, _, direction = text.rpartition(":")
        directed = {"direction": direction} if rest and direction in DIRECTIONS else {}
        name, _, asked = (rest if directed else text).rpartition(":")
        take, equals, level = asked.partition("=")
        if not name or take not in TAKES:
            found[text] = {"of": text}
        else:
            found[text] = {"of": name, "take": take} | directed | ({"level": _number(level)} if equals else {})
    return found


_OPTIONS = (
    click.option(
        "--vary", multiple=True, callback=_vary, metavar="NAME=FROM:TO",
        help="A parameter, a start value or an input that varies, in its unit or with one; NAME=FROM:TO:COUNT and "
        "NAME=VALUE,VALUE make a grid. May be repeated.  [default: all parameters by 10 %, upward and downward]",
    ),
    click.option(
        "--cases", "table", type=click.Path(), metavar="FILE.csv", help="Cases from a table: a column per name."
    ),
    click.option(
        "--method", type=click.Choice([name for name in METHODS if name != "table"]),
        help="How cases are chosen.  [default: latin-hypercube, or grid if --vary says so]",
    ),
    click.option("--count", type=click.IntRange(min=1), metavar="N", help=f"How many cases.  [default: {COUNT}]"),
    click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Of what is drawn by chance.  [default: 0]"),
    click.option("--indices", is_flag=True, default=None, help="Sobol' indices; with --method sobol."),
    click.option(
        "--at", "fixed", multiple=True, callback=_pairs, metavar="NAME=VALUE", help="The same in all cases. Repeatable."
    ),
    click.option(
        "--input", "inputs", multiple=True, callback=_pairs, metavar="NAME=FORMULA",
        help="What an input follows, as in --input 'force=5*sin(t)'. Repeatable.",
    ),
    click.option(
        "--result", "results", multiple=True, callback=_results, metavar="NAME[:TAKE]",
        help=f"What is kept: of a variable its {', '.join(TAKES[:-1])} or {TAKES[-1]}: the time when it passes 0, or "
        f"{TAKES[-1]}=LEVEL; {TAKES[-1]}=LEVEL:rising and …:falling pass it in that direction only.  "
        "[default: all outputs at the end]",
    ),
    click.option("--trajectory", "trajectories", multiple=True, metavar="NAME", help="Kept over time. Repeatable."),
    click.option(
        "--trajectory-format", type=click.Choice(["parquet", "zarr"]), help="Of their files.  [default: parquet]"
    ),
    click.option("--stop", type=float, metavar="T", help="End in s.  [default: as the experiment]"),
    click.option("--step", type=float, metavar="H", help="Communication step in s.  [default: as the experiment]"),
    click.option("--kind", type=click.Choice(["cs", "me"]), help="How a unit is run.  [default: cs]"),
)  # fmt: skip


def plan_options(command: Command) -> Command:
    """Add the options that describe a plan; the command receives them as keyword arguments."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def plan_of(source: Path, words: Mapping[str, Any]) -> Path | dict[str, Any]:
    """Return the plan: read from a file, or made of options for a unit or model.

    Args:
        source: Plan, unit or model.
        words: The options' values; None or empty: not given.

    Raises:
        click.UsageError: If a plan is given and options that a plan says.
    """
    given = {name: value for name, value in words.items() if value not in (None, (), {})}
    if source.suffix == ".toml":
        if given:
            names = {"table": "cases", "fixed": "at", "inputs": "input", "results": "result", "arguments": "set"}
            said = ", ".join(f"--{names.get(name, name).replace('_', '-')}" for name in given)
            raise click.UsageError(f"{said}: a plan says this itself; write it into {source}, or name a unit or model")
        return source
    plan: dict[str, Any] = {"unit" if source.suffix == ".fmu" else "model": str(source)}
    for key, name in (("set", "fixed"), *((each, each) for each in ("arguments", "inputs", "results", "vary"))):
        if name in given:
            plan[key] = given[name]
    if "trajectories" in given:
        plan["trajectories"] = list(given["trajectories"])
    plan |= {key: given[key] for key in ("trajectory_format", "stop", "step", "kind") if key in given}
    plan["cases"] = _cases(given)
    return plan


def _cases(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table ``[cases]``."""
    cases = {key: given[key] for key in ("method", "count", "seed", "indices") if key in given}
    if "table" in given:
        return {"method": "table", "file": given["table"], **cases}
    vary = given.get("vary", {})
    on_grid = any("values" in entry or "count" in entry for entry in vary.values())
    cases.setdefault("method", "grid" if on_grid else "latin-hypercube")
    if cases["method"] != "grid":
        cases.setdefault("count", COUNT if cases["method"] == "latin-hypercube" else 128)
    if not vary:
        cases["spread"] = SPREAD
    return cases
