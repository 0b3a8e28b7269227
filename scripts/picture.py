"""Makes the README's picture afresh: docs/pictures/double_pendulum.svg."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from mb2fmu import pipeline
from mb2fmu.report import draw_validation_figure

ROOT = Path(__file__).parents[1]


def main() -> int:
    """Exit code 0 if the FMU in the picture passed."""
    with tempfile.TemporaryDirectory() as folder:
        finished = pipeline.run(ROOT / "models" / "double_pendulum.py", folder)
    names = ("shoulder.angle", "elbow.angle")
    picture = draw_validation_figure(finished.validated.result, names, title="double_pendulum: FMU and reference")
    (ROOT / "docs" / "pictures" / "double_pendulum.svg").write_bytes(picture)
    return 0 if finished.passed else 1


if __name__ == "__main__":
    sys.exit(main())
