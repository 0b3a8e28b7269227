"""Units in Modelica's notation, read into FMI's base units.

Grammar (Modelica 3.6, "Unit Expressions"; an exponent stands directly behind its unit, ``m2``; exponents that are no
whole numbers, as in Hertz's stiffness ``N/m1.5``, are not Modelica's):

    expression  = numerator [ "/" denominator ]
    numerator   = "1" | product | "(" expression ")"
    denominator = factor | "(" expression ")"
    product     = factor { "." factor }
    factor      = symbol [ [ "+" | "-" ] digits [ "." digits | "/" digits ] ]

So ``N.m.s/rad``, ``kg/(m.s2)`` and ``1/s`` are units; ``kg/m/s2`` and ``W/m2.K`` are refused: they can be read in two
ways. ``convert_unit_to_modelica`` brings ``kg*m^2/s**2``, ``N m``, ``m·s⁻²`` and ``-`` into this form.

A symbol is one of the table's, or a decimal prefix and a unit that takes one. FMI's base units are kg, m, s, A, K,
mol, cd and rad; a value v in a unit is ``factor * v + offset`` in base units.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from types import MappingProxyType

BASE_UNITS = ("kg", "m", "s", "A", "K", "mol", "cd", "rad")
"""FMI's base units, in the order of ``Unit.exponents``."""
Exponent = int | Fraction
"""Of a unit: whole, or a fraction such as 3/2."""
MAX_EXPONENT_DENOMINATOR = 12
_MAX_EXPONENT_LENGTH = 12
MAX_EXPONENT = 99
"""Of a base unit, either sign: no quantity has more, and FMI's descriptions have room for no number of digits."""


@dataclass(frozen=True, slots=True)
class UnitOfMeasurement:
    """A unit as FMI describes it.

    Attributes:
        name: As it was written.
        factor: Value in base units per value in this unit, > 0.
        offset: Added after the factor: 273.15 for ``degC``, else 0.
        exponents: Of the base units, in the order of ``BASE_UNITS``; whole ones are of type ``int``.

    Raises:
        ValueError: If the factor is not a positive number or the exponents are not eight.
    """

    name: str
    factor: float
    offset: float
    exponents: tuple[Exponent, ...]

    def __post_init__(self) -> None:
        if not (math.isfinite(self.factor) and self.factor > 0.0 and math.isfinite(self.offset)):
            raise ValueError(f"{self.name}: factor {self.factor} and offset {self.offset} make no unit")
        if len(self.exponents) != len(BASE_UNITS):
            raise ValueError(f"{self.name}: {len(self.exponents)} exponents for {len(BASE_UNITS)} base units")

    @property
    def powers(self) -> Mapping[str, Exponent]:
        """Base unit → exponent, non-zero ones only."""
        return {base: power for base, power in zip(BASE_UNITS, self.exponents, strict=True) if power}

    @property
    def whole_exponents(self) -> tuple[int, ...] | None:
        """The exponents; None if one is no whole number: FMI, SSP and Modelica have no others."""
        whole = tuple(power for power in self.exponents if isinstance(power, int))
        return whole if len(whole) == len(self.exponents) else None


@dataclass(frozen=True, slots=True)
class _ExactUnitScale:
    """A unit while it is read, exact: ``ratio`` π^``pi_power`` base units, plus ``offset``."""

    ratio: Fraction
    pi_power: Exponent
    exponents: tuple[Exponent, ...]
    offset: Fraction = Fraction(0)

    def times(self, other: _ExactUnitScale, power: Exponent) -> _ExactUnitScale:
        """Return ``self`` · ``other``^``power``; exact where the power is whole."""
        return _ExactUnitScale(
            self.ratio * Fraction(other.ratio**power),
            _simplify_exponent(self.pi_power + other.pi_power * power),
            tuple(_simplify_exponent(a + power * b) for a, b in zip(self.exponents, other.exponents, strict=True)),
        )


def _simplify_exponent(power: Exponent) -> Exponent:
    """Return a whole number as ``int``."""
    return int(power) if power == int(power) else power


_UNIT_SCALE_ONE = _ExactUnitScale(Fraction(1), 0, (0,) * len(BASE_UNITS))


def _make_scale(
    ratio: Fraction | int | str = 1, pi_power: int = 0, offset: str = "0", **exponents: int
) -> _ExactUnitScale:
    """Return a unit as rational factor · π^n, exponents of base units, and offset."""
    return _ExactUnitScale(
        Fraction(ratio), pi_power, tuple(exponents.get(base, 0) for base in BASE_UNITS), Fraction(offset)
    )


_PREFIXABLE_UNITS = MappingProxyType(
    {
        "m": _make_scale(m=1),
        "g": _make_scale("1/1000", kg=1),
        "s": _make_scale(s=1),
        "A": _make_scale(A=1),
        "K": _make_scale(K=1),
        "mol": _make_scale(mol=1),
        "cd": _make_scale(cd=1),
        "rad": _make_scale(rad=1),
        "Hz": _make_scale(s=-1),
        "N": _make_scale(kg=1, m=1, s=-2),
        "Pa": _make_scale(kg=1, m=-1, s=-2),
        "bar": _make_scale(100_000, kg=1, m=-1, s=-2),
        "J": _make_scale(kg=1, m=2, s=-2),
        "W": _make_scale(kg=1, m=2, s=-3),
        "Wh": _make_scale(3600, kg=1, m=2, s=-2),
        "C": _make_scale(s=1, A=1),
        "V": _make_scale(kg=1, m=2, s=-3, A=-1),
        "F": _make_scale(kg=-1, m=-2, s=4, A=2),
        "Ohm": _make_scale(kg=1, m=2, s=-3, A=-2),
        "S": _make_scale(kg=-1, m=-2, s=3, A=2),
        "Wb": _make_scale(kg=1, m=2, s=-2, A=-1),
        "T": _make_scale(kg=1, s=-2, A=-1),
        "H": _make_scale(kg=1, m=2, s=-2, A=-2),
        "lm": _make_scale(cd=1),
        "lx": _make_scale(cd=1, m=-2),
        "l": _make_scale("1/1000", m=3),
        "L": _make_scale("1/1000", m=3),
        "t": _make_scale(1000, kg=1),
    }
)
"""Units that take decimal prefixes. Mass is built on the gram, as its prefixes are."""

_UNPREFIXABLE_UNITS = MappingProxyType(
    {
        "min": _make_scale(60, s=1),
        "h": _make_scale(3600, s=1),
        "d": _make_scale(86_400, s=1),
        "deg": _make_scale("1/180", 1, rad=1),
        "r": _make_scale(2, 1, rad=1),
        "rev": _make_scale(2, 1, rad=1),
        "rpm": _make_scale("1/30", 1, rad=1, s=-1),
        "sr": _make_scale(rad=2),
        "degC": _make_scale(offset="273.15", K=1),
        "in": _make_scale("0.0254", m=1),
        "ft": _make_scale("0.3048", m=1),
        "lb": _make_scale("0.45359237", kg=1),
        "lbf": _make_scale(Fraction("0.45359237") * Fraction("9.80665"), kg=1, m=1, s=-2),
    }
)
"""Units that take none. ``r`` and ``rev`` are revolutions, ``rpm`` is ``r/min``."""

_PREFIXES = MappingProxyType(
    {
        symbol: Fraction(10) ** power
        for symbol, power in [
            *zip(("da", "h", "k", "M", "G", "T", "P", "E"), (1, 2, 3, 6, 9, 12, 15, 18), strict=True),
            *zip(("d", "c", "m", "u", "n", "p", "f", "a"), (-1, -2, -3, -6, -9, -12, -15, -18), strict=True),
        ]
    }
)

_COMMON_MISTAKES = MappingProxyType(
    {
        "degree": "deg",
        "degrees": "deg",
        "radian": "rad",
        "radians": "rad",
        "sec": "s",
        "second": "s",
        "seconds": "s",
        "meter": "m",
        "metre": "m",
        "meters": "m",
        "metres": "m",
        "kilogram": "kg",
        "newton": "N",
        "hour": "h",
        "hr": "h",
        "celsius": "degC",
        "ohm": "Ohm",
        "turn": "rev",
        "lbs": "lb",
        "kph": "km/h",
        "minute": "min",
        "day": "d",
        "gram": "g",
        "tonne": "t",
        "pascal": "Pa",
        "joule": "J",
        "watt": "W",
        "hertz": "Hz",
        "volt": "V",
        "ampere": "A",
        "kelvin": "K",
        "liter": "l",
        "litre": "l",
        "millimeter": "mm",
        "millimetre": "mm",
        "inch": "in",
        "foot": "ft",
        "pound": "lb",
        "psi": "lbf/in2",
        "revolution": "rev",
        "": "1",
        "%": "1",
    }
)
"""What people write, and what is meant."""

_COMMON_PREFIXES = ("k", "M", "c", "m", "u", "n")
"""Prefixes that mechanics uses."""

_TOKEN_PATTERN = re.compile(
    r"(?P<symbol>[A-Za-z]+)(?P<exponent>[+-]?\d+(?:\.\d+|/\d+)?)?|(?P<one>1(?!\d))|(?P<sign>[./()])"
)
_FOREIGN_SIGNS = MappingProxyType({"^": "an exponent is a number directly behind its unit: m2, m1.5 or m3/2"})
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_MICRO_LETTERS = str.maketrans({"µ": "u", "μ": "u"})
_EXPONENT_PATTERN = re.compile(
    r"\s*(?:\*\*|\^)\s*(?:([+-]?\d+(?:\.\d+)?)(?![.\d])|\(\s*([+-]?\d+(?:\.\d+|\s*/\s*\d+)?)\s*\))"
)
_MULTIPLICATION_PATTERN = re.compile(r"\s*[*·⋅×]\s*")
_ADJACENT_PATTERN = re.compile(r"(?<=[A-Za-z0-9)])\s+(?=[A-Za-z(])")
_NUMBER_PATTERN = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*?)\s*\Z")
_READ_ONLY_SPELLINGS = MappingProxyType({"-": "1", "°": "deg", "°C": "degC", "\u03a9": "Ohm", "\u2126": "Ohm"})
"""Whole texts that can be read in one way only."""

UnitFactors = tuple[tuple[str, Exponent], ...]
"""A unit as a product: (symbol, exponent), in the order written."""


def convert_unit_to_modelica(text: str) -> str:
    """Return a unit, as people write it, in Modelica's notation: ``kg*m^2`` → ``kg.m2``, ``-`` → ``1``.

    ``*``, ``·`` and a space multiply; ``^``, ``**`` and raised digits are exponents. What is left over is judged by
    :func:`parse_unit`; so ``Nm`` stays as it is, and is asked back.
    """
    if not isinstance(text, str) or text.strip() in _READ_ONLY_SPELLINGS:
        return _READ_ONLY_SPELLINGS[text.strip()] if isinstance(text, str) else text
    plain = text.strip().translate(_SUPERSCRIPTS).translate(_MICRO_LETTERS)
    plain = _EXPONENT_PATTERN.sub(lambda match: "".join((match[1] or match[2]).split()), plain)
    plain = re.sub(r"\s*/\s*", "/", _MULTIPLICATION_PATTERN.sub(".", plain))
    return _ADJACENT_PATTERN.sub(".", plain)


@cache
def parse_unit(text: str) -> UnitOfMeasurement:
    """Read a unit.

    Args:
        text: In Modelica's notation, e.g. ``"N.m.s/rad"``, or what :func:`convert_unit_to_modelica` brings into it;
            ``"1"`` for a pure number.

    Returns:
        The unit, named in Modelica's notation.

    Raises:
        ValueError: Says what is wrong with ``text`` and what may have been meant.
    """
    if not isinstance(text, str):
        raise ValueError(f"a unit is text, such as 'N.m', not {text!r}")  # noqa: TRY004 - as for all that is no unit
    text = convert_unit_to_modelica(text)
    factors = _UnitParser(text).factors()
    scale, too_large = _UNIT_SCALE_ONE, f"unit {text!r}: its factor in base units is no number that a computer has"
    try:
        for symbol, exponent in factors:
            scale = scale.times(_find_unit_symbol(symbol, text), exponent)
    except OverflowError as error:  # of powers that are no whole numbers
        raise ValueError(too_large) from error
    if any(abs(float(power)) > MAX_EXPONENT for power in scale.exponents):
        raise ValueError(f"unit {text!r}: an exponent of a base unit is above {MAX_EXPONENT}")
    if len(factors) == 1 and factors[0][1] == 1:
        scale = _find_unit_symbol(factors[0][0], text)
    elif offset_units := [symbol for symbol, _ in factors if _find_unit_symbol(symbol, text).offset]:
        raise ValueError(f"unit {text!r}: {offset_units[0]} has an offset and can only stand alone; write K")
    try:
        return UnitOfMeasurement(
            text, float(scale.ratio) * math.pi ** float(scale.pi_power), float(scale.offset), scale.exponents
        )
    except OverflowError as error:
        raise ValueError(too_large) from error


def are_compatible_units(unit: UnitOfMeasurement | str, display_unit: UnitOfMeasurement | str) -> bool:
    """Return whether values in ``unit`` can be shown in ``display_unit``: equal base exponents, rad included.

    Raises:
        ValueError: If one of them is no unit.
    """
    return _parsed_unit(unit).exponents == _parsed_unit(display_unit).exponents


def display_unit_conversion(
    unit: UnitOfMeasurement | str, display_unit: UnitOfMeasurement | str
) -> tuple[float, float]:
    """Return FMI's (factor, offset) of a display unit: shown value = factor * value in ``unit`` + offset.

    Raises:
        ValueError: If the two are not compatible, or one of them is no unit.
    """
    unit, display_unit = _parsed_unit(unit), _parsed_unit(display_unit)
    if not are_compatible_units(unit, display_unit):
        raise ValueError(
            f"{display_unit.name} ({format_base_units(display_unit)}) cannot show values in "
            f"{unit.name} ({format_base_units(unit)})"
        )
    return unit.factor / display_unit.factor, (unit.offset - display_unit.offset) / display_unit.factor


def parse_value_in_unit(value: float | str, unit: str) -> float:
    """Return a value as a number in ``unit``: ``2``, ``"2"``, or with its own unit, ``"30 deg"``.

    Raises:
        ValueError: If it is no finite number, or its unit does not measure what ``unit`` does.
    """
    if not isinstance(value, str):
        number = float(value)
    elif (match := _NUMBER_PATTERN.match(value)) is None:
        raise ValueError(f"{value!r} is no number")
    else:
        number = float(match[1])
        if match[2]:
            factor, offset = display_unit_conversion(unit, match[2])
            number = (number - offset) / factor
    if not math.isfinite(number):
        raise ValueError(f"{value!r} is not finite")
    return number


def format_base_units(unit: UnitOfMeasurement | str) -> str:
    """Return the base units of a unit, e.g. ``kg.m2/s2`` for ``N.m``."""
    return _format_factors(tuple(_parsed_unit(unit).powers.items()))


def derive_rate_unit(text: str) -> str:
    """Return the unit of the time derivative of a quantity in ``text``: ``rad/s`` → ``rad/s2``, ``1`` → ``1/s``.

    Raises:
        ValueError: If ``text`` is no unit.
    """
    return derive_quotient_unit(text, "s")


def derive_quotient_unit(text: str, by: str) -> str:
    """Return the unit of a derivative: a quantity in ``text`` with respect to a quantity in ``by``.

    ``rad/s`` by ``kg.m2`` gives ``rad/(s.kg.m2)``; differences of temperatures are in K.

    Raises:
        ValueError: If one of them is no unit.
    """
    powers: dict[str, Exponent] = {}
    for part, sign in ((text, 1), (by, -1)):
        factors = (("K", 1),) if parse_unit(part).offset else _UnitParser(part).factors()
        for symbol, exponent in factors:
            powers[symbol] = powers.get(symbol, 0) + sign * exponent
    return _format_factors(tuple((symbol, exponent) for symbol, exponent in powers.items() if exponent))


def _parsed_unit(unit: UnitOfMeasurement | str) -> UnitOfMeasurement:
    """Return a unit, parsed if it is text."""
    return parse_unit(unit) if isinstance(unit, str) else unit


def _format_factors(factors: UnitFactors) -> str:
    """Return a product of powers in Modelica's notation; the inverse of reading it."""
    above = ".".join(f"{symbol}{_format_exponent(power)}" for symbol, power in factors if power > 0)
    below = [f"{symbol}{_format_exponent(-power)}" for symbol, power in factors if power < 0]
    if not below:
        return above or "1"
    return f"{above or '1'}/{below[0] if len(below) == 1 else '(' + '.'.join(below) + ')'}"


def _format_exponent(power: Exponent) -> str:
    """Return an exponent as it stands behind a unit: nothing for 1, ``1.5`` for 3/2, ``2/3`` where no decimal ends."""
    power = _simplify_exponent(power)
    if power == 1:
        return ""
    return f"{float(power):g}" if 1000 % Fraction(power).denominator == 0 else str(power)


class _UnitParser:
    """Recursive descent over the grammar in the module's docstring."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(self._split())
        self.next = 0

    def factors(self) -> UnitFactors:
        """Return the whole text as a product.

        Raises:
            ValueError: If the text does not follow the grammar.
        """
        if not self.tokens:
            raise self._fault("it is empty; a pure number has the unit '1'")
        result = self._expression()
        if self.next < len(self.tokens):
            rest = self.tokens[self.next].group()
            if rest in "./":
                raise self._fault("can be read in two ways; put the whole denominator into brackets: J/(kg.K)")
            raise self._fault(f"{rest!r} is one too many")
        return result

    def _split(self) -> Iterator[re.Match[str]]:
        """Yield the tokens of the text; raise at the first character that cannot stand there, with what was meant."""
        position = 0
        while position < len(self.text):
            token = _TOKEN_PATTERN.match(self.text, position)
            if token is None:
                strange = self.text[position]
                meant = _COMMON_MISTAKES.get(self.text)
                raise self._fault(
                    f"did you mean {meant!r}?"
                    if meant
                    else _FOREIGN_SIGNS.get(strange, f"{strange!r} cannot stand there")
                )
            yield token
            position = token.end()

    def _expression(self) -> UnitFactors:
        """Read numerator / denominator; exponents of the denominator are negated."""
        above = self._numerator()
        if not self._take("/"):
            return above
        return above + tuple((symbol, -exponent) for symbol, exponent in self._denominator())

    def _numerator(self) -> UnitFactors:
        """Read 1, a bracket, or factors joined by dots."""
        if self._take("("):
            return self._closed()
        if self.next < len(self.tokens) and self.tokens[self.next]["one"]:
            self.next += 1
            return ()
        result = self._factor()
        while self._take("."):
            result += self._factor()
        return result

    def _denominator(self) -> UnitFactors:
        """Read one factor or a bracket: a.b after / needs one, by Modelica's rules."""
        return self._closed() if self._take("(") else self._factor()

    def _closed(self) -> UnitFactors:
        """Read an expression up to its closing bracket."""
        result = self._expression()
        if not self._take(")"):
            raise self._fault("a bracket is not closed")
        return result

    def _factor(self) -> UnitFactors:
        """Read a unit's symbol with its exponent, 1 where none is written."""
        token = self.tokens[self.next] if self.next < len(self.tokens) else None
        if token is None or not token["symbol"]:
            raise self._fault(f"a unit is missing {f'before {token.group()!r}' if token else 'at the end'}")
        self.next += 1
        digits = token["exponent"] or "1"
        readable = len(digits) <= _MAX_EXPONENT_LENGTH and not re.fullmatch(r"[^/]*/0+", digits)
        power = Fraction(digits) if readable else None
        if power is None or abs(power) > MAX_EXPONENT or power.denominator > MAX_EXPONENT_DENOMINATOR:
            raise self._fault(
                f"the exponent of {token['symbol']!r} has to be a whole number up to {MAX_EXPONENT}, or a fraction "
                f"such as 3/2 or 1.5 with a denominator up to {MAX_EXPONENT_DENOMINATOR}"
            )
        return ((token["symbol"], _simplify_exponent(power)),)

    def _take(self, sign: str) -> bool:
        """Move past a sign if it comes next, and say whether it did."""
        found = self.next < len(self.tokens) and self.tokens[self.next].group() == sign
        self.next += found
        return found

    def _fault(self, what: str) -> ValueError:
        """Return the error with the whole text of the unit."""
        return ValueError(f"unit {self.text!r}: {what}")


def _find_unit_symbol(symbol: str, text: str) -> _ExactUnitScale:
    """Return the table's entry for a symbol, prefixed ones included; ``text`` is for the message."""
    known = _all_symbols()
    if symbol in known:
        return known[symbol]
    found = _suggest_symbol(symbol, known)
    hint = (
        f"; did you mean {' or '.join(repr(_replace_symbol(text, symbol, name)) for name in found)}?" if found else ""
    )
    whole = "" if symbol == text else f" in {text!r}"
    raise ValueError(f"unknown unit {symbol!r}{whole}{hint}")


def _suggest_symbol(symbol: str, known: Mapping[str, _ExactUnitScale]) -> list[str]:
    """Return what may be meant by a symbol that is none, the likeliest kind alone."""
    low = symbol.lower()
    for word in (symbol, low, low.removesuffix("s"), low.removesuffix("es")):
        if word in _COMMON_MISTAKES and word:
            return [_COMMON_MISTAKES[word]]
    same = [name for name in (*_PREFIXABLE_UNITS, *_UNPREFIXABLE_UNITS, "kg") if name.lower() == low]
    if len(same) == 1:
        return same
    near = difflib.get_close_matches(symbol, known, n=1, cutoff=0.85)
    near = near or ([symbol[:-1]] if symbol.endswith("s") and symbol[:-1] in known else [])  # plurals: kgs
    near = near or ([product] if (product := _split_symbol_product(symbol)) else [])
    return near or difflib.get_close_matches(
        symbol, [name for name in known if not _is_rare_prefix(name)], n=3, cutoff=0.5
    )


def _is_rare_prefix(name: str) -> bool:
    """Return whether a symbol has a prefix that mechanics hardly uses."""
    return name not in {*_PREFIXABLE_UNITS, *_UNPREFIXABLE_UNITS} and name[0] not in _COMMON_PREFIXES


def _replace_symbol(text: str, symbol: str, name: str) -> str:
    """Return a unit with one symbol replaced; a product in a denominator gets brackets."""

    def put(match: re.Match[str]) -> str:
        """Return the symbol's replacement, with its exponent."""
        above, exponent = match[1], match[2]
        if exponent and "/" in name:
            return f"{above}({name}){exponent}"
        return f"{above}({name}{exponent})" if above == "/" and re.search("[./]", name) else f"{above}{name}{exponent}"

    return re.sub(rf"(^|[^A-Za-z]){symbol}(?![A-Za-z])([+-]?\d*)", put, text)


def _split_symbol_product(symbol: str) -> str:
    """Return ``N.m`` for ``Nm``, ``kN.m`` for ``kNm``: the shortest product of different units that spells a symbol.

    Units without a prefix are tried first: ``Nms`` is ``N.m.s`` and not ``N.ms``. Nothing where there is none.
    """
    plain = {*_PREFIXABLE_UNITS, *_UNPREFIXABLE_UNITS, "kg"}
    prefixed = plain | {prefix + unit for prefix in _COMMON_PREFIXES for unit in _PREFIXABLE_UNITS}
    return ".".join(_spell_symbols(symbol, plain) or _spell_symbols(symbol, prefixed))


def _spell_symbols(symbol: str, units: AbstractSet[str]) -> list[str]:
    """Return the fewest different units whose names one after the other are a text; none where there are none."""
    best: list[str] = []
    for cut in range(len(symbol), 0, -1):
        head, tail = symbol[:cut], symbol[cut:]
        if head not in units:
            continue
        rest = _spell_symbols(tail, units - {head}) if tail else []
        if (rest or not tail) and (not best or 1 + len(rest) < len(best)):
            best = [head, *rest]
    return best


@cache
def _all_symbols() -> Mapping[str, _ExactUnitScale]:
    """Return every symbol: the tables' own, which win (``min`` is minutes, ``cd`` candela), then prefixed ones."""
    prefixed = {
        prefix + symbol: _ExactUnitScale(ratio * scale.ratio, scale.pi_power, scale.exponents)
        for symbol, scale in _PREFIXABLE_UNITS.items()
        for prefix, ratio in _PREFIXES.items()
    }
    return MappingProxyType(prefixed | dict(_PREFIXABLE_UNITS) | dict(_UNPREFIXABLE_UNITS))
