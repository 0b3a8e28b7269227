"""Write a model file to start from."""

from __future__ import annotations

import keyword
import re
from importlib import resources
from pathlib import Path

from mb2fmu.errors import Fault, ModelError

_TEMPLATE_HEADLINE = "no model was written:"


def write_model_template(name: str, folder: Path | str) -> Path:
    """Write ``folder``/``name``.py, a commented model file that runs unchanged; the folder is made if needed.

    Args:
        name: A Python identifier such as ``crane``; the model in the file is called ``Crane``.
        folder: Where to.

    Returns:
        The file.

    Raises:
        ModelError: If the name is no identifier that begins with a letter, or the file is there already.
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or keyword.iskeyword(name):
        what = f"{name!r} cannot name a model: it must be an identifier of C and Python that begins with a letter"
        if keyword.iskeyword(name):
            what = f"{name!r} cannot name a model: it is a word of the language Python"
        raise ModelError(_TEMPLATE_HEADLINE, [Fault(what, remedy="take letters, digits and _, for example my_robot")])
    from jinja2 import Environment, StrictUndefined  # takes longer to import than all else here

    template = resources.files("mb2fmu.model").joinpath("templates/new_model.py.jinja").read_text(encoding="utf-8")
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)  # noqa: S701 - Python, not HTML
    title = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    path = Path(folder) / f"{name}.py"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(environment.from_string(template).render(name=name, title=title))
    except FileExistsError:
        raise ModelError(
            _TEMPLATE_HEADLINE, [Fault("it is there already", str(path), "choose another name or folder")]
        ) from None
    except OSError as error:
        raise ModelError(
            _TEMPLATE_HEADLINE, [Fault(error.strerror or str(error), str(path), "choose another folder")]
        ) from error
    return path
