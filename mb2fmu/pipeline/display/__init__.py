"""Show motions: drawings, animations and videos of a model, an FMU or a validation.

Input: a motion. Output: ``Drawing``, pages, pictures and videos. Promises: a page is one file that needs no network.
Must not: compute a motion by itself.
"""
