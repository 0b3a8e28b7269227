"""Numbers for people: few digits, raised powers of ten; the exact value travels beside them in the page."""

from __future__ import annotations

import math

_SUPERSCRIPT_DIGITS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
MINUS_SIGN = "−"


def format_power_of_ten(exponent: int) -> str:
    """Return ``10⁻⁶`` for −6."""
    return f"10{str(exponent).translate(_SUPERSCRIPT_DIGITS)}"


def format_short_number(value: float | None, digits: int = 3) -> str:
    """Return ``digits`` significant digits: ``0.0123``, ``1.23·10⁻⁹``, ``∞``, ``not a number``; ``–`` for None."""
    if value is None:
        return "–"
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS_SIGN}∞"
    if value == 0:
        return "0"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    power = int(exponent)
    if -4 <= power < 6:
        text = f"{value:.{max(digits - 1 - power, 0)}f}"
    else:
        text = f"{_strip_trailing_zeros(mantissa)}·{format_power_of_ten(power)}"
    return _strip_trailing_zeros(text).replace("-", MINUS_SIGN) if "·" not in text else text.replace("-", MINUS_SIGN)


def format_exact_number(value: float) -> str:
    """Return the shortest text that reads back to the same bits, for machines and for copying."""
    return repr(float(value))


def format_declared_number(value: float) -> str:
    """Return a declared number (start value, bound) with all digits: ``9.81``, ``10⁻⁶``, ``2``, ``−1.5``."""
    if not math.isfinite(value):
        return format_short_number(value)
    if value.is_integer() and abs(value) < 1e6:
        return f"{value:.0f}".replace("-", MINUS_SIGN)
    mantissa, _, exponent = repr(value).partition("e")
    if not exponent:
        return mantissa.replace("-", MINUS_SIGN)
    power = format_power_of_ten(int(exponent))
    return power if mantissa == "1" else f"{mantissa.replace('-', MINUS_SIGN)}·{power}"


def _strip_trailing_zeros(text: str) -> str:
    """Return a decimal number without zeros (and point) at its end."""
    return text.rstrip("0").rstrip(".") if "." in text else text
