"""Audits every model's FMU, of both FMI versions: ``python scripts/audit_models.py [folder]``.

Prints one line for each FMU, and every finding; exit code 1 if there is an error.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Literal

from mb2fmu import pipeline
from mb2fmu.audit import audit
from mb2fmu.report.pages.audit_page import format_audit_headline

ROOT = Path(__file__).parents[1]
VERSIONS: tuple[Literal["2", "3"], ...] = ("2", "3")


def main() -> int:
    """Exports to a folder (a temporary one if none is named) and audits what is there."""
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else scratch)
        for model in sorted((ROOT / "models").glob("*.py")):
            for fmi in VERSIONS:
                path = pipeline.export(model, folder / f"fmi{fmi}", fmi=fmi).path
                result = audit(path)
                failed += result.fails("error")
                print(f"{model.stem}, FMI {fmi}: {format_audit_headline(result)} in {result.seconds:.1f} s")
                for each in result.findings:
                    print(f"    {each}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
