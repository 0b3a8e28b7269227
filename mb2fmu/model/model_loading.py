"""Load a ``Model`` from a model file, and list the models of a folder.

A model file is Python: one function of it is annotated ``-> Model``, or is the only one; the parameters of that
function, if any, have defaults. Functions whose names begin with an underscore are not looked at.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import importlib.machinery
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, TypeVar

from mb2fmu.errors import Fault, ModelError

if TYPE_CHECKING:
    from mb2fmu.model.model import Model

_MODEL_REMEDY = "write  def build() -> Model: …  in it, or begin with  mb2fmu new NAME"
_SYSTEM_REMEDY = "write  def build() -> CoupledSystem: …  in it; docs/how_to/systems.md shows how"


class _HasSourceFile(Protocol):
    """What knows the file that it was loaded from."""

    source: Path | None


LoadedType = TypeVar("LoadedType", bound=_HasSourceFile)


@dataclass(frozen=True, slots=True)
class ModelListEntry:
    """A model file as ``mb2fmu list`` shows it.

    Attributes:
        name: The file's name without ``.py``.
        summary: First line of the file's docstring, or of the model function's.
        path: The file.
    """

    name: str
    summary: str
    path: Path


def load(path: Path | str, arguments: Mapping[str, Any] | None = None) -> Model:
    """Run a model file and its model function.

    The file is imported under a name of its own, so that models never meet each other or an installed module; modules
    beside it can be imported, and are forgotten again afterwards.

    Args:
        path: The model file, or the name of a model that comes with mb2fmu.
        arguments: Parameter of the model function → value; text is converted to the type of the parameter's default.

    Returns:
        The model, with ``source`` set to the absolute path.

    Raises:
        ModelError: If there is no such file, it raises, it has none or several model functions, an argument does not
            fit, or the function returns something else.
    """
    from mb2fmu.model.model import Model  # brings SymPy, which listing models has no use for

    return load_result_of_annotated_function(path, arguments, Model)


def load_result_of_annotated_function(
    path: Path | str, arguments: Mapping[str, Any] | None, promised: type[LoadedType]
) -> LoadedType:
    """Load as :func:`load` does, for any class with a ``source`` that a file's function is annotated to return."""
    path = resolve_model_argument(path)
    _check_readable(path, promised)
    _refuse_plain_script(path, promised)
    path = path.resolve()
    kind, headline = promised.__name__, f"the {_class_word(promised)} cannot be built from {path.name}:"
    with _allow_folder_imports(path.parent):
        module = _run_file(path)
        function = _find_annotated_function(path, module, promised)
        keywords = _convert_arguments(path, function, arguments or {})
        try:
            made = function(**keywords)
        except ModelError:
            raise  # it says all there is to say
        except Exception as error:
            raise ModelError(
                f"the {_class_word(promised)} cannot be built from {path.name}:", [_user_code_fault(path, error)]
            ) from error
    if not isinstance(made, promised):
        where = f"{path.name}:{function.__code__.co_firstlineno}"
        what = f"{function.__name__} returned {_describe_value(made)}, not a {kind}"
        fault = Fault(what, where, f"end the function with  return {_class_word(promised)}")
        raise ModelError(headline, [fault])
    made.source = path
    return made


def _class_word(promised: type) -> str:
    """Return the word for a class in messages: model for ``Model``, system for ``CoupledSystem``."""
    return "system" if promised.__name__ == "CoupledSystem" else "model"


def shipped_models_folder() -> Path:
    """Return the folder of the models that come with mb2fmu: in the package, or beside it in the repository."""
    package = Path(__file__).parents[1]
    installed = package / "shipped_models"
    return installed if installed.is_dir() else package.parent / "models"


def resolve_model_argument(path: Path | str, folder: Path = Path()) -> Path:
    """Return the file that a user means: a path, a name there without ``.py``, or a model that comes with mb2fmu.

    Args:
        path: What the user wrote.
        folder: That paths and names begin in.
    """
    given = folder / path
    if given.is_file() or given.suffix or Path(path).name != str(path):
        return given
    candidates = (folder / f"{path}.py", shipped_models_folder() / f"{path}.py")
    return next((candidate for candidate in candidates if candidate.is_file()), given)


def list_models(folder: Path | str) -> list[ModelListEntry]:
    """Return the model files of a folder, by name, without running them.

    Raises:
        ModelError: If there is no such folder.
    """
    folder = Path(folder)
    if not folder.is_dir():
        remedy = "name the folder, or write a first model:  mb2fmu new NAME"
        raise ModelError("the models cannot be listed:", [Fault("there is no such folder", str(folder), remedy)])
    listed = []
    for path in sorted(folder.glob("*.py")):
        try:
            tree = ast.parse(path.read_bytes(), path.name)
        except SyntaxError as error:
            listed.append(ModelListEntry(path.stem, f"(cannot be read: line {error.lineno}: {error.msg})", path))
            continue
        functions = _find_model_functions(tree)
        if functions:
            docstring = ast.get_docstring(tree) or ast.get_docstring(functions[0]) or ""
            listed.append(ModelListEntry(path.stem, docstring.partition("\n")[0].strip(), path))
    return listed


def _find_model_functions(tree: ast.Module) -> list[ast.FunctionDef]:
    """Return the functions annotated ``-> Model``; otherwise the only function of a file that imports mb2fmu."""
    public = [node for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    annotated = [node for node in public if _returns_model(node)]
    if annotated or len(public) != 1 or public[0].returns is not None:
        return annotated
    modules = [alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)]
    return public if any(name.partition(".")[0] == "mb2fmu" for name in modules) else []


def _returns_model(node: ast.FunctionDef) -> bool:
    """Return whether a public function is annotated to return a Model, read without running the file."""
    if node.returns is None or node.name.startswith("_"):
        return False
    return _last_name(ast.unparse(node.returns)) == "Model"


def _last_name(annotation: str) -> str:
    """Return the class's name of an annotation's text, without quotes and modules."""
    return annotation.strip("'\"").rpartition(".")[2]


def _annotation_matches(annotation: object, promised: type) -> bool:
    """Return whether an annotation (a class, or its text) means ``promised``."""
    if isinstance(annotation, str):
        return _last_name(annotation) == promised.__name__
    return isinstance(annotation, type) and issubclass(annotation, promised)


def _check_readable(path: Path, promised: type) -> None:
    """Raise for a file that is absent or is no Python: a shipped model of that name must not take its place."""
    word = _class_word(promised)
    is_model = word == "model"
    if path.suffix == ".py" and path.is_file():
        return
    if path.suffix != ".py" and path.exists():
        remedy = f"give the Python file that has the {word} function, " + (
            "or a robot's (.urdf, .xml, .sdf); simulate, animate, validate and audit take an FMU (.fmu), too"
            if is_model
            else "or an .ssp"
        )
        remedy = f"mb2fmu adopt {path}  writes one" if path.suffix == ".ipynb" else remedy
        fault = Fault(f"a {word} file ends in .py", str(path), remedy)
    else:
        beside = [str(other) for other in path.parent.glob("*.py")] if path.parent.is_dir() else []
        shipped = [model.stem for model in shipped_models_folder().glob("*.py")] if is_model else []
        near = difflib.get_close_matches(str(path), [*beside, *shipped], n=3) or sorted(beside)[:5]
        remedy = f"did you mean {' or '.join(near)}?" if near else "give the path of a Python file"
        remedy += "; mb2fmu list shows the models that come with it" if is_model else ""
        fault = Fault("there is no such file", str(path), remedy)
    raise ModelError(f"no {word} could be loaded:", [fault])


def _refuse_plain_script(path: Path, promised: type) -> None:
    """Raise for a SymPy script that knows nothing of mb2fmu, before all of it runs."""
    if _class_word(promised) != "model":
        return
    try:
        tree = ast.parse(path.read_bytes(), path.name)
    except (SyntaxError, ValueError):
        return  # reported where the file is run
    imports = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    imports += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    tops = {name.partition(".")[0] for name in imports}
    mentions = any(name.startswith("sympy.physics") for name in imports)
    if mentions and "mb2fmu" not in tops and not any(_returns_model(n) for n in tree.body if _is_function(n)):
        fault = Fault("it is a SymPy script without a model function", path.name, f"mb2fmu adopt {path}  writes one")
        raise ModelError("no model could be loaded:", [fault])


def _is_function(node: ast.stmt) -> TypeGuard[ast.FunctionDef]:
    """Return whether a statement defines a function."""
    return isinstance(node, ast.FunctionDef)


@contextmanager
def _allow_folder_imports(folder: Path) -> Iterator[None]:
    """Let imports find modules in ``folder``; restore ``sys`` afterwards."""
    known, old_path, old_switch = set(sys.modules), list(sys.path), sys.dont_write_bytecode
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True  # nothing is left beside the user's files
    try:
        yield
    finally:
        sys.path[:] = old_path
        sys.dont_write_bytecode = old_switch
        for name in set(sys.modules) - known:
            home = getattr(sys.modules[name], "__file__", None)
            if home is not None and Path(home).resolve().is_relative_to(folder):
                del sys.modules[name]


def _run_file(path: Path) -> ModuleType:
    """Return the file as a module, named by its path: two files of one name are two modules."""
    name = f"mb2fmu_model_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}_{path.stem}"
    loader = importlib.machinery.SourceFileLoader(name, str(path))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look a class's module up there
    try:
        loader.exec_module(module)
    except SyntaxError as error:
        where = f"{Path(error.filename or path).name}:{error.lineno}"
        raise ModelError(f"{path.name} is no Python that can be read:", [Fault(f"{error.msg}", where)]) from error
    except (Exception, SystemExit) as error:
        raise ModelError(
            f"{path.name} raises an error when it is imported:", [_user_code_fault(path, error)]
        ) from error
    return module


def _user_code_fault(path: Path, error: BaseException) -> Fault:
    """Return an exception of the user's code as a fault, at the deepest line inside the model file's folder."""
    steps = traceback.extract_tb(error.__traceback__)
    own = [step for step in steps if Path(step.filename).resolve().is_relative_to(path.parent)]
    where = f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else path.name
    line = own[-1].line if own else ""
    message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    near = difflib.get_close_matches(error.name or "", dir(error.obj), n=1) if isinstance(error, AttributeError) else []
    suggestion = f"; did you mean {near[0]}?" if near else ""
    return Fault(message, where, f"raised by  {line}{suggestion}" if line else "")


def _find_annotated_function(path: Path, module: ModuleType, promised: type) -> Callable[..., Any]:
    """Return the one public function of a file with the wanted annotation; else raise with all candidates."""
    found = [
        function
        for name, function in vars(module).items()
        if inspect.isfunction(function)
        and function.__module__ == module.__name__
        and not name.startswith("_")
        and _annotation_matches(function.__annotations__.get("return"), promised)
    ]
    others = [
        f
        for name, f in vars(module).items()
        if inspect.isfunction(f) and f.__module__ == module.__name__ and not name.startswith("_")
    ]
    if len(found) == 1:
        return found[0]
    alone = [function for function in others if _needs_no_arguments(function)]
    if not found and len(alone) == 1 and "return" not in alone[0].__annotations__:
        return alone[0]
    headline = f"{path.name} has {'no' if not found else len(found)} {_class_word(promised)} functions, it needs one:"
    if found:
        remedy = "begin the names of all but one with an underscore, or put them into files of their own"
        lines = [
            Fault(f"{f.__name__} is annotated -> {promised.__name__}", f"{path.name}:{f.__code__.co_firstlineno}")
            for f in found
        ]
        raise ModelError(headline, [*lines[:-1], Fault(lines[-1].what, lines[-1].where, remedy)])
    what = f"no function is annotated -> {promised.__name__}"
    if others:
        what += f"; there are {', '.join(sorted(f.__name__ for f in others))}"
    raise ModelError(
        headline, [Fault(what, path.name, _MODEL_REMEDY if _class_word(promised) == "model" else _SYSTEM_REMEDY)]
    )


def _needs_no_arguments(function: Callable[..., Any]) -> bool:
    """Return whether a function can be called without arguments; helpers such as ``bump(s)`` cannot."""
    kinds = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    parameters = inspect.signature(function).parameters.values()
    return all(item.default is not item.empty or item.kind in kinds for item in parameters)


def _convert_arguments(path: Path, function: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments for ``function``, each converted to its default's type."""
    where = f"{path.name}:{function.__code__.co_firstlineno}"
    parameters = inspect.signature(function).parameters
    faults = []
    keywords = {}
    for name, parameter in parameters.items():
        is_optional = parameter.default is not parameter.empty
        if not is_optional and parameter.kind not in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
            what = f"parameter {name} of {function.__name__} has no default"
            faults.append(Fault(what, where, f"give it one, such as  {name}=1.0"))
    for name, value in arguments.items():
        if name not in parameters:
            near = difflib.get_close_matches(name, parameters, n=2)
            takes = ", ".join(parameters) or "no arguments"
            remedy = f"did you mean {' or '.join(near)}?" if near else f"it takes {takes}"
            remedy = _ROBOT_OPTION_REMEDIES.get(name, remedy)
            faults.append(Fault(f"{function.__name__} has no parameter {name}", where, remedy))
        elif (default := parameters[name].default) is not inspect.Parameter.empty:
            try:
                keywords[name] = _convert_like_default(default, value)
            except ValueError as error:
                faults.append(Fault(f"argument {name}={value}: {error}", where, f"its default is {default!r}"))
    if faults:
        raise ModelError(f"the model function of {path.name} cannot be called:", faults)
    return keywords


_ROBOT_OPTION_REMEDIES: Mapping[str, str] = {
    "arrays": "--arrays is for robots; a model declares arrays by itself:  model.array(NAME, [first, second, …])",
}
"""Setting of a robot → what to do instead in a model that has no such argument."""
_TRUTH_WORDS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def _convert_like_default(default: Any, value: Any) -> Any:
    """``value`` in the type of ``default``.

    Raises:
        ValueError: If it does not fit.
    """
    kind = type(default)
    if not isinstance(value, str):
        if isinstance(value, kind) or (kind is float and isinstance(value, int)):
            return kind(value) if kind is float else value
        raise ValueError(f"{_describe_value(value)} is no {kind.__name__}")
    if kind is bool:
        if value.lower() not in _TRUTH_WORDS:
            raise ValueError("it must be true or false")
        return _TRUTH_WORDS[value.lower()]
    if kind not in (int, float, str):
        raise ValueError(f"a {kind.__name__} cannot be given as text")
    try:
        return kind(value)
    except ValueError:
        raise ValueError(f"it must be {'a whole number' if kind is int else 'a number'}") from None


def _describe_value(value: object) -> str:
    """Return what a value is, for a message."""
    return "nothing" if value is None else f"a {type(value).__name__}"
