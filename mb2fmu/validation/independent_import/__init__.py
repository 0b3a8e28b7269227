"""Robot files imported a second time, minimally, to check the first import.

Input: a URDF, SDF or MJCF file, and the model that was made of it. Output: x' at random points by Kane's equations in
numbers, or by MuJoCo. Promises: what it cannot read is named, and not judged. Must not: take a number of the file from
the first import; of the model it takes the user's settings and the names of the variables.
"""
