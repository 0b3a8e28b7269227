"""mb2fmu: a mechanism written with SymPy becomes a Functional Mock-up Unit, with the proof that it moves alike."""
