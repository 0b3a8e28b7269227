"""Makes the stored references afresh: reference/NAME/trajectory.csv and provenance.json for models/NAME.py."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mb2fmu import model
from mb2fmu.errors import Mb2FmuError
from mb2fmu.mechanics import formulations, mechanism
from mb2fmu.pipeline.run_and_report.validation_run import choose_reference_equations
from mb2fmu.validation import Trajectory, make_reference
from mb2fmu.validation.reference import reference_files

ROOT = Path(__file__).parents[1]


def fresh(name: str) -> Trajectory:
    """The reference of models/NAME.py as it would be stored.

    Raises:
        Mb2FmuError: If the model is wrong or cannot be integrated.
    """
    read = mechanism.solve_loop_closure_start_values(
        mechanism.read_mechanism(model.check_model(model.load(ROOT / "models" / f"{name}.py")))
    )
    definition = read.declared  # its start values are on the constraints
    used, _ = formulations.choose_formulation(read)
    reference = choose_reference_equations(read, used)
    return reference_files.take_reference_excerpt(
        make_reference(definition, reference.equations, mechanism=reference.mechanism)
    )


def main() -> int:
    """Exit code 0, or 2 if a model is wrong."""
    parser = argparse.ArgumentParser(prog="make_reference", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of models/NAME.py; all of them if none is given")
    names = parser.parse_args().names or sorted(path.stem for path in (ROOT / "models").glob("*.py"))
    for name in names:
        try:
            made = fresh(name)
        except Mb2FmuError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return error.exit_code
        reference_files.write_reference_trajectory_files(made, ROOT / "reference" / name)
        spread = made.uncertainty.max()
        print(f"{name}: {len(made.time)} rows to t = {made.time[-1]:g} s, uncertainty at most {spread:.1e}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
