"""``python -m mb2fmu``, and the program ``mb2fmu``: the command line."""

from __future__ import annotations

from mb2fmu import cli


def main() -> None:
    """Runs the command line as all that this process does."""
    cli.main(is_whole_process=True)


if __name__ == "__main__":
    main()
