"""TODO robots/file_formats."""
