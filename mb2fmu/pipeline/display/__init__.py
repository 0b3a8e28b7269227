"""Show motions: drawings, animations and videos of a model, an FMU or a validation.

Input: a motion. Output: ``Drawing``, pages, pictures and videos. Must not: compute a motion by itself.
"""
