"""FMUs that pythonfmu's own command builds, as others make them; without the second free at the end of the process.

pythonfmu 0.7.0 frees one block twice as its host ends (``pythonfmu_patch.py``): where memory is used in an
unlucky order the host dies with "corrupted double-linked list" after all work is done. Tests of what such units do
would be red now and then for it. ``test_python_exits`` shows the fault itself.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from mb2fmu.fmu.package.python_fmu import patch_interpreter_finalization


def built(folder: Path, name: str, source: str) -> Path:
    """The FMU of a slave's source; ``name`` is its class, and the FMU's file ``name.fmu`` in the folder."""
    script = f"{name.lower()}.py"
    (folder / script).write_text(source, encoding="utf-8")
    command = [sys.executable, "-m", "pythonfmu", "build", "-f", script, "-d", str(folder)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)
    stock, mended = folder / f"{name}.fmu", folder / f"{name}.mended"
    with zipfile.ZipFile(stock) as old, zipfile.ZipFile(mended, "w") as new:
        for member in old.infolist():
            content = old.read(member)
            is_linux = member.filename.startswith("binaries/linux64/") and member.filename.endswith(".so")
            new.writestr(member, patch_interpreter_finalization(content) if is_linux else content)
    return mended.replace(stock)
