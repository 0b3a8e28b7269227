"""Names: FMI's structured names for variables, identifiers for models, names of requested outputs."""

from __future__ import annotations

import keyword
import re
import unicodedata

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
    kept = re.sub(r"\W+", "_", _transliterate_to_ascii(str(name)), flags=re.ASCII).strip("_")
    if not kept:
        return otherwise
    return f"_{kept}" if kept[0].isdigit() or keyword.iskeyword(kept) else kept


_COMBINING_DOTS = {"\u0307": "_dot", "\u0308": "_ddot"}


def _transliterate_to_ascii(name: str) -> str:
    """Return a name in ASCII where its letters have one: ``θ₁`` → ``theta1``, ``größe`` → ``grosse``."""
    if name.isascii():
        return name
    return "".join(map(_spell_letter, unicodedata.normalize("NFKC", name)))


def _spell_letter(letter: str) -> str:
    """Return one letter in ASCII: Greek ones by their names, others without their marks; itself if it has none."""
    word = re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER (?:FINAL )?([A-Z]+)( WITH .*)?", unicodedata.name(letter, ""))
    if word is not None:
        spelled = word[2].lower().replace("lamda", "lambda")
        return spelled if word[1] == "SMALL" else spelled.capitalize()
    if letter in _COMBINING_DOTS:
        return _COMBINING_DOTS[letter]
    parts = unicodedata.normalize("NFKD", letter.replace("ß", "ss"))
    bare = "".join(each for each in parts if not unicodedata.combining(each))
    if not bare.isascii():
        return letter
    is_umlaut = parts[1:] == "\u0308" and bare.lower() in {"a", "e", "i", "o", "u", "y"}
    return bare if is_umlaut else bare + "".join(_COMBINING_DOTS.get(each, "") for each in parts)


_DOT_SUFFIXES = {"dot": "_dot", "ddot": "_ddot", "dddot": "_dddot"}
_LATEX_COMMAND_PATTERN = re.compile(r"\\([A-Za-z]+)")


def strip_latex(name: str) -> str:
    r"""Return a symbol's name without LaTeX and Greek letters: ``\dot{\theta}_{1}`` and ``θ̇_1`` → ``theta_1_dot``.

    Legal names stay unchanged.
    """
    if is_variable_name(name):
        return name
    name = _transliterate_to_ascii(name)
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


def list_output_variable_names(request: OutputRequest) -> tuple[str, ...]:
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
