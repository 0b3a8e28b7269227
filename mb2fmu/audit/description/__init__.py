"""Archive, description and binaries, checked without running anything."""
