"""``emit_single_module_target``: files of a target that is one module: printed functions, fixed routines, templates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import jinja2

from mb2fmu.compiler.program.scalar_program import PiecewisePolynomial, ScalarProgram
from mb2fmu.errors import EmitError, Fault
from mb2fmu.fmu import packaged_templates
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.targets.target_model_description import TargetModelDescription
from mb2fmu.targets.work_array_printing import WorkArrayFunctionPrinter, print_module_model_functions

_PLACEHOLDER = "NameOfTheModel"


@dataclass(frozen=True, slots=True, eq=False)
class TargetModuleLanguage:
    """A language whose target is one module, and files around it.

    Attributes:
        title: Of the language, for messages.
        package: Of the target; its folder ``runtime`` has fixed routines, ``templates`` the templates.
        suffix: Of its files, without a dot.
        printer: Of functions.
        filters: Of templates.
        files: Template of each file by what follows the model's name in the file's name; the first is the module.
        strings: Pattern of a character string.
        comment: Beginning of a comment, which ends with its line.
        max_name_length: Number of characters of a name.
        keywords: Words that are no names, besides those in the files.
        ignores_case: In names.
    """

    title: str
    package: str
    suffix: str
    printer: type[WorkArrayFunctionPrinter]
    filters: Mapping[str, Callable[..., Any]]
    files: Mapping[str, str]
    strings: str
    comment: str
    max_name_length: int
    keywords: frozenset[str] = frozenset()
    ignores_case: bool = False


def emit_single_module_target(
    program: ScalarProgram, model: TargetModelDescription, language: TargetModuleLanguage
) -> InMemoryFileTree:
    """Print the files.

    Args:
        program: With the entry points ``rhs`` and ``outputs``, and ``remember`` where there is discrete memory.
        model: Names, units, start values, experiment.
        language: Of the target.

    Raises:
        EmitError: If the model's name cannot be that of a module, with what stands in the way.
    """
    contents = print_module_model_functions(program, language.printer)
    context = {
        "contents": contents,
        "tables": list(_list_table_arrays(contents.tables)),
        "fixed": [
            packaged_templates.read_packaged_file(language.package, f"runtime/{name}.{language.suffix}").decode()
            for name in ("arithmetic", *sorted(contents.routines))
        ],
    }

    def render(named: TargetModelDescription) -> dict[str, str]:
        """Return the text of each file."""
        environment = _make_template_environment(language)
        return {
            f"{named.name}{end}": environment.get_template(template).render(model=named, **context)
            for end, template in language.files.items()
        }

    _require_name(model.name, language, render(replace(model, name=_PLACEHOLDER)))
    return InMemoryFileTree({name: text.encode() for name, text in render(model).items()})


def _require_name(name: str, language: TargetModuleLanguage, texts: Mapping[str, str]) -> None:
    """Refuse a model's name that the language cannot have, or that something else has in the files already."""
    longest = language.max_name_length - max(len(end.partition(".")[0]) for end in language.files)
    words = _find_words("\n".join(texts.values()), language) | language.keywords
    fold = str.lower if language.ignores_case else str
    faults = []
    if len(name) > longest:
        faults.append(Fault(f"it has {len(name)} characters", name, f"{language.title} allows {longest}"))
    if fold(name) in {fold(word) for word in words}:
        wrong = f"{language.title} needs this name for something else"
        faults.append(Fault(wrong, name, "give the model another name"))
    if name.startswith("_") and language.ignores_case:
        faults.append(Fault(f"a name of {language.title} begins with a letter", name, "give the model another name"))
    if faults:
        raise EmitError(f"the code in {language.title} cannot be printed:", faults)


def _find_words(text: str, language: TargetModuleLanguage) -> set[str]:
    """Return the names in a text; those in character strings and comments are none."""
    code = re.sub(rf"{language.strings}|{re.escape(language.comment)}[^\n]*", " ", text)
    return set(re.findall(r"(?<!\w)[A-Za-z_]\w*", code))


def _list_table_arrays(tables: Mapping[PiecewisePolynomial, str]) -> Iterator[tuple[str, str, tuple[float, ...]]]:
    """Yield the two arrays of each lookup table: name, ``breaks`` or ``coefficients``, numbers.

    The coefficients stand piece by piece, the highest power first.
    """
    for table, name in tables.items():
        yield name, "breaks", table.breaks
        pieces = range(len(table.breaks) - 1)
        yield name, "coefficients", tuple(row[i] for i in pieces for row in reversed(table.coefficients))


@cache
def _make_template_environment(language: TargetModuleLanguage) -> jinja2.Environment:
    """Return the template environment of a target."""
    environment = packaged_templates.make_template_environment(language.package)
    environment.filters |= dict(language.filters)
    return environment
