"""Registry of notebook displays: report modules register functions here; records call them without importing these."""

from __future__ import annotations

from functools import singledispatch
from importlib import import_module

_waiting_modules: list[str] = []


def import_on_first_display(module: str) -> None:
    """Let a module that registers functions wait until a record is shown for which nobody has registered one."""
    _waiting_modules.append(module)


@singledispatch
def render_record_as_html(record: object) -> str:
    """Show a record as HTML.

    Raises:
        TypeError: If nobody has registered how records of this class are shown.
    """
    if _waiting_modules:
        import_module(_waiting_modules.pop())
        return render_record_as_html(record)
    raise TypeError(f"no module registered how {type(record).__name__} is shown in a notebook")


@singledispatch
def render_record_as_latex(record: object) -> str:
    """Show a record as LaTeX.

    Raises:
        TypeError: If nobody has registered how records of this class are shown.
    """
    if _waiting_modules:
        import_module(_waiting_modules.pop())
        return render_record_as_latex(record)
    raise TypeError(f"no module registered how {type(record).__name__} is shown as a formula")
