"""Archive, description and binaries, checked without running anything.

Input: the bytes of an archive. Output: ``DescribedModel``, and violations of rules.

Promises: all faults at once; a description that is wrong is read as far as it goes.

Must not: run any code of the FMU, or write what the archive contains outside of the work folder.
"""
