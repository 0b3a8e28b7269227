"""Placeholder docstring: input type, output type, promises, what this stage must not do."""
