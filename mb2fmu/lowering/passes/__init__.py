"""Passes: Program → Program with the same values, one file each."""

from mb2fmu.lowering.passes.prune import prune

__all__ = ["prune"]
