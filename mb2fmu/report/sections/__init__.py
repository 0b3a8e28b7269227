"""TODO report/sections."""
