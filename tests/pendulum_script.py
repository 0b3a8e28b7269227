"""A user's SymPy script of a pendulum, as text: what scripts that are run, adopted or read in pages begin with."""

MECHANICS = """
import sympy as sm
import sympy.physics.mechanics as me
m, g, l = sm.symbols("m g l")
q, u = me.dynamicsymbols("q u")
N, A = me.ReferenceFrame("N"), me.ReferenceFrame("A")
A.orient_axis(N, N.z, q)
A.set_ang_vel(N, u * N.z)
O = me.Point("O")
O.set_vel(N, 0)
P = O.locatenew("P", l * A.x)
P.v2pt_theory(O, N, A)
bob = me.Particle("bob", P, m)
kane = me.KanesMethod(N, [q], [u], kd_eqs=[q.diff() - u])
loads = [(P, m * g * N.x)]
"""
"""The mechanics, before SymPy forms their equations."""

FORMED = MECHANICS + "fr, frstar = kane.kanes_equations([bob], loads)\n"
