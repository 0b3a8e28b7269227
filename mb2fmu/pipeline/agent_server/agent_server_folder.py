"""``AgentServerFolder``: the folder of the server, and what may be named in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mb2fmu.errors import Fault, ModelError
from mb2fmu.model import shipped_models_folder


@dataclass(frozen=True, slots=True)
class AgentServerFolder:
    """The folder where the server was started.

    Attributes:
        path: Its path, without links in it.
    """

    path: Path

    def find_file(self, name: str) -> Path:
        """Return a file of the folder; it need not be there.

        Args:
            name: Its path, relative to the folder.

        Raises:
            ModelError: If it is outside of the folder, by ``..``, by an absolute path, or by a link.
        """
        try:
            found = (self.path / name).resolve()
        except (OSError, RuntimeError, ValueError) as error:  # a circle of links, or a null character
            raise ModelError("this file cannot be used:", [Fault(str(error), name)]) from error
        if not found.is_relative_to(self.path):
            fault = Fault("it is outside of the folder that the server was started in", name, "name a file inside it")
            raise ModelError("this file cannot be used:", [fault])
        return found

    def find_output_folder(self) -> Path:
        """Return the folder of FMUs, reports and tables; it is made if it is not there.

        Raises:
            ModelError: If it, or a file in it, is a link to outside of the folder.
        """
        found = self.find_file("out")
        found.mkdir(exist_ok=True)
        for each in found.iterdir():  # a command writes through a link
            self.find_file(str(each))
        return found

    def find_model(self, name: str) -> str:
        """Return a model as commands take it: a file of the folder, or the name of a model that comes with mb2fmu.

        Args:
            name: A path relative to the folder, or such a name.

        Raises:
            ModelError: If it is outside of the folder.
        """
        is_shipped = name in {model.stem for model in shipped_models_folder().glob("*.py")}
        return name if is_shipped and not (self.path / name).exists() else str(self.find_file(name))
