"""Names: FMI's structured names for variables, identifiers for models, names of requested outputs."""

from __future__ import annotations

import keyword
import re

from mb2fmu.model.declarations.declared_outputs import OUTPUT_KINDS, OutputRequest

# FMI 2.0.5 section 2.2.9 and FMI 3.0.2 section 2.4.7.5.1, "structured" naming, without quoted names
_NAME_PART_PATTERN = r"[A-Za-z_][A-Za-z0-9_]*(\[\d+(,\d+)*\])?"
_NAME_PATH_PATTERN = rf"{_NAME_PART_PATTERN}(\.{_NAME_PART_PATTERN})*"
_VARIABLE_NAME_PATTERN = re.compile(rf"({_NAME_PATH_PATTERN}|der\({_NAME_PATH_PATTERN}(,[1-9]\d*)?\))\Z")
_IDENTIFIER_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def is_variable_name(name: object) -> bool:
    """Return whether FMI's structured naming allows ``name``: ``arm.joint[2].angle``, ``der(x)``; no spaces, quotes."""
    return isinstance(name, str) and _VARIABLE_NAME_PATTERN.match(name) is not None


def is_model_name(name: object) -> bool:
    """Return whether ``name`` is an identifier of C and of Python."""
    return isinstance(name, str) and _IDENTIFIER_PATTERN.match(name) is not None and not keyword.iskeyword(name)


def suggest_identifier(name: object, otherwise: str) -> str:
    """Return a legal identifier similar to ``name``; ``otherwise`` if no character is left."""
    kept = re.sub(r"\W+", "_", str(name), flags=re.ASCII).strip("_")
    if not kept:
        return otherwise
    return f"_{kept}" if kept[0].isdigit() or keyword.iskeyword(kept) else kept


_DOT_SUFFIXES = {"dot": "_dot", "ddot": "_ddot", "dddot": "_dddot"}
_LATEX_COMMAND_PATTERN = re.compile(r"\\([A-Za-z]+)")


def strip_latex(name: str) -> str:
    r"""Return a symbol's name without LaTeX: ``\dot{\theta}_{1}`` → ``theta_1_dot``; legal names stay unchanged."""
    if is_variable_name(name):
        return name
    ending = "".join(_DOT_SUFFIXES.get(command, "") for command in _LATEX_COMMAND_PATTERN.findall(name))
    bare = _LATEX_COMMAND_PATTERN.sub(
        lambda match: "" if match[1] in {*_DOT_SUFFIXES, *_LATEX_STYLE_COMMANDS} else match[1], name
    )
    bare = re.sub(r"\s+", "_", re.sub(r"[{}$\\^]|\\,", "", bare).replace("'", "_prime").replace("*", "_star").strip())
    cleaned = f"{bare}{ending}"
    return cleaned if is_variable_name(cleaned) else name


_LATEX_STYLE_COMMANDS = frozenset(
    {"mathrm", "mathbf", "mathit", "mathcal", "text", "rm", "bf", "hat", "bar", "tilde", "vec", "boldsymbol"}
)


def output_variable_names(request: OutputRequest) -> tuple[str, ...]:
    """Return the FMU variables that one output request makes, in order."""
    name = request.name
    if request.kind == "orientation":
        if request.representation == "quaternion":
            return tuple(f"{name}.{part}" for part in "wxyz")
        return tuple(f"{name}[{index}]" for index in (1, 2, 3))
    is_load = request.kind == "force" and isinstance(request.subject[0], tuple)
    if OUTPUT_KINDS[request.kind].vector or is_load:
        return tuple(f"{name}.{part}" for part in "xyz")
    return (name,)
