"""What archive, description and binaries show without running anything."""
