"""``python -m mb2fmu``: the command line."""

from __future__ import annotations

from mb2fmu.cli import main

if __name__ == "__main__":
    main()
