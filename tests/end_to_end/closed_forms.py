"""Solutions known in closed form, with which the motion of the FMUs and the equations are compared.

Each function takes numbers in SI units and times of shape (n,), gives arrays of shape (n,), uses nothing of mb2fmu, and
names its source. Elliptic functions take the parameter m = k², as SciPy and mpmath do. Where m comes close to 1 they
are evaluated by mpmath with 30 digits.
"""

from __future__ import annotations

from dataclasses import dataclass

import mpmath
import numpy as np
import numpy.typing as npt
from scipy.integrate import solve_ivp
from scipy.special import ellipj, ellipk

Floats = npt.NDArray[np.float64]


def pendulum(t: Floats, amplitude: float, length: float, g: float) -> tuple[Floats, Floats]:
    """Angle (rad) and angular speed (rad/s) of a pendulum released at rest at ``amplitude``, 0 < amplitude < pi.

    sin(theta/2) = k sn(w0 t + K, k²) with k = sin(amplitude/2), w0 = sqrt(g/l), K the quarter period; differentiated,
    theta' = 2 k w0 cn. Source: F. M. S. Lima, Am. J. Phys. 78 (2010) 1146-1151; Landau & Lifshitz, Mechanics, §11.
    """
    k, w0 = np.sin(amplitude / 2), np.sqrt(g / length)
    sn, cn, _, _ = ellipj(w0 * t + ellipk(k**2), k**2)
    return 2 * np.arcsin(k * sn), 2 * k * w0 * cn


@dataclass(frozen=True)
class Top:
    """Lagrange's top at an extreme of its nutation (theta' = 0).

    Attributes:
        A: Moment of inertia about the tip across the axis, kg·m².
        C: Moment of inertia about the axis, kg·m².
        weight_moment: m g l, N·m.
        tilt: theta at t = 0, rad.
        precession: psi' at t = 0, rad/s.
        spin: phi' at t = 0, rad/s.
    """

    A: float
    C: float
    weight_moment: float
    tilt: float
    precession: float
    spin: float

    @property
    def axial_rate(self) -> float:
        """psi' cos(theta) + phi', constant, rad/s."""
        return self.precession * np.cos(self.tilt) + self.spin

    @mpmath.workdps(30)
    def nutation(self, t: Floats) -> tuple[Floats, Floats]:
        """(cos(theta), psi) at ``t``, with psi(0) = 0.

        With z = cos(theta), a = C w3/A, b = p_psi/A, beta = 2 m g l/A the energy integral is
        z'² = (1 - z²)(alpha - beta z) - (b - a z)², a cubic with the roots z1 <= z2 <= z3: z moves between z1 and z2,

            z = z1 + (z2 - z1) sn²(w t + w0, m),   w = sqrt(beta (z3 - z1))/2,   m = (z2 - z1)/(z3 - z1),

        and psi' = (b - a z)/(1 - z²) in partial fractions gives two elliptic integrals of the third kind.
        Source: Goldstein, Poole, Safko, Classical Mechanics, 3rd ed., §5.7; Whittaker, Analytical Dynamics, §71-72.
        """
        z0 = mpmath.mpf(float(np.cos(self.tilt)))
        a = mpmath.mpf(self.C) * self.axial_rate / self.A
        b = mpmath.mpf(self.precession) * (1 - z0**2) + a * z0
        beta = 2 * mpmath.mpf(self.weight_moment) / self.A
        # The cubic vanishes at z0; divided by (z - z0) it leaves beta z² + p z + q, from its two highest coefficients.
        alpha = (b - a * z0) ** 2 / (1 - z0**2) + beta * z0
        p = beta * z0 - (alpha + a**2)
        q = z0 * p + 2 * a * b - beta
        root = mpmath.sqrt(p**2 - 4 * beta * q)
        other, z3 = (-p - root) / (2 * beta), (-p + root) / (2 * beta)
        z1, z2 = min(z0, other), max(z0, other)
        w, m = mpmath.sqrt(beta * (z3 - z1)) / 2, (z2 - z1) / (z3 - z1)
        begin = mpmath.mpf(0) if z0 == z1 else mpmath.ellipk(m)

        def integral(tau: mpmath.mpf, n: mpmath.mpf) -> mpmath.mpf:
            """Of dτ/(1 - n sn²), from 0 to tau."""
            turns = mpmath.nint(tau / (2 * mpmath.ellipk(m)))
            rest = tau - turns * 2 * mpmath.ellipk(m)
            amplitude = mpmath.asin(mpmath.ellipfun("sn", rest, m=m))
            return mpmath.ellippi(n, amplitude, m) + 2 * turns * mpmath.ellippi(n, m)

        cosines, angles = [], []
        for time in t:
            tau = w * mpmath.mpf(float(time)) + begin
            cosines.append(z1 + (z2 - z1) * mpmath.ellipfun("sn", tau, m=m) ** 2)
            up, down = (integral(tau, n) - integral(begin, n) for n in ((z2 - z1) / (1 - z1), -(z2 - z1) / (1 + z1)))
            angles.append(((b - a) * up / (1 - z1) + (b + a) * down / (1 + z1)) / (2 * w))
        return np.array(cosines, dtype=float), np.array(angles, dtype=float)


def steady_precession(A: float, C: float, weight_moment: float, tilt: float, axial_rate: float) -> tuple[float, float]:
    """Slow and fast psi' (rad/s) at which a top keeps its ``tilt``: A psi'² cos(theta) - C w3 psi' + m g l = 0.

    Source: Goldstein, Poole, Safko, §5.7.
    """
    a, b, c = A * np.cos(tilt), C * axial_rate, weight_moment
    root = np.sqrt(b**2 - 4 * a * c)
    return 2 * c / (b + root), (b + root) / (2 * a)


@mpmath.workdps(30)
def free_rigid_body(t: Floats, inertia: tuple[float, float, float], start: tuple[float, float, float]) -> Floats:
    """Angular velocity of a torque-free body along its principal axes x, y, z, shape (n, 3), rad/s.

    With the axes numbered so that I1 < I2 < I3 and M² > 2 E I2 (else numbered the other way round):

        w1 = A1 cn(tau), w2 = A2 sn(tau), w3 = A3 dn(tau).

    With A1, A2, A3 of one sign this solves I2 w2' = |I3 - I1| w3 w1 and its like. Where right-handed axes become
    left-handed ones by the numbering, or I3 < I1, but not both, Euler's equations have the other sign; so they have for
    -w, which is taken then. Source: Landau & Lifshitz, Mechanics, 3rd ed., §37.
    """
    I, w = [mpmath.mpf(i) for i in inertia], [mpmath.mpf(c) for c in start]
    energy2 = mpmath.fsum(i * c**2 for i, c in zip(I, w, strict=True))
    momentum2 = mpmath.fsum((i * c) ** 2 for i, c in zip(I, w, strict=True))
    order = sorted(range(3), key=lambda axis: I[axis])
    if momentum2 < energy2 * I[order[1]]:
        order.reverse()
    I1, I2, I3 = (I[axis] for axis in order)
    right_handed = tuple(order) in {(0, 1, 2), (1, 2, 0), (2, 0, 1)}
    handed = 1 if right_handed == (I3 > I1) else -1
    w1, w2, w3 = (handed * w[axis] for axis in order)
    side = mpmath.sign(w3)
    low, high = energy2 * I3 - momentum2, momentum2 - energy2 * I1
    A1 = side * mpmath.sqrt(low / (I1 * (I3 - I1)))
    A2 = mpmath.sqrt(low / (I2 * (I3 - I2)))
    A3 = side * mpmath.sqrt(high / (I3 * (I3 - I1)))
    rate = mpmath.sqrt((I3 - I2) * high / (I1 * I2 * I3))
    m = (I2 - I1) * low / ((I3 - I2) * high)
    begin = mpmath.ellipf(mpmath.atan2(w2 / A2, w1 / A1), m)
    result = np.empty((len(t), 3))
    for row, time in zip(result, t, strict=True):
        tau = rate * mpmath.mpf(float(time)) + begin
        values = (
            A1 * mpmath.ellipfun("cn", tau, m=m),
            A2 * mpmath.ellipfun("sn", tau, m=m),
            A3 * mpmath.ellipfun("dn", tau, m=m),
        )
        for axis, value in zip(order, values, strict=True):
            row[axis] = float(handed * value)
    return result


def sleigh(
    t: Floats, mass: float, offset: float, inertia: float, v0: float, omega0: float
) -> tuple[Floats, Floats, Floats]:
    """Speed along the blade (m/s), rate of turn (rad/s) and heading from the first one (rad) of Chaplygin's sleigh.

    v' = a omega², omega' = -kappa v omega with kappa = m a/(I + m a²) keep V² = v² + (a/kappa) omega², hence
    v = V tanh(s), omega = ±V sqrt(kappa/a) / cosh(s), s = kappa V t + s0, and the heading is the Gudermannian of s.
    Source: A. M. Bloch, Nonholonomic Mechanics and Control, 2003, §1.7.
    """
    kappa = mass * offset / (inertia + mass * offset**2)
    V = np.sqrt(v0**2 + offset / kappa * omega0**2)
    s0 = np.arctanh(v0 / V)
    s = kappa * V * t + s0
    sign, ratio = np.sign(omega0), np.sqrt(kappa / offset)
    heading = sign * ratio / kappa * (2 * np.arctan(np.tanh(s / 2)) - 2 * np.arctan(np.tanh(s0 / 2)))
    return V * np.tanh(s), sign * V * ratio / np.cosh(s), heading


def turntable_ball(
    t: Floats, table_speed: float, start: tuple[float, float], velocity: tuple[float, float]
) -> tuple[Floats, Floats]:
    """Place x, y (m) of a homogeneous ball that rolls on a turntable, in the inertial frame.

    The friction at the contact accelerates the centre and turns the ball; eliminated, v' = (2/7) Omega ez × v: the
    centre runs on a circle with the angular velocity nu = 2 Omega/7 about c = r0 + ez × v0/nu.
    Source: J. A. Burns, Am. J. Phys. 49 (1981) 56-58.
    """
    nu = 2 * table_speed / 7
    r0, v0 = complex(*start), complex(*velocity)
    centre = r0 + 1j * v0 / nu
    place = centre + (r0 - centre) * np.exp(1j * nu * t)
    return place.real, place.imag


@dataclass(frozen=True)
class DiscCircle:
    """A thin homogeneous disc rolling steadily: lean, heading rate and roll rate are constant.

    Attributes:
        radius: Of the disc, m.
        g: m/s².
        lean: q2, rad, not 0.
        roll_rate: s = q3', rad/s.

    The moment about the contact point's heading axis balances with the heading rate w if 5 r w² sin cos + 6 r w s cos +
    4 g sin = 0 (sin, cos of the lean); the slower of the two w is meant. The contact runs with r s on a circle of
    radius r s/|w|. Source: O'Reilly, Nonlinear Dynamics 10 (1996) 287-305.
    """

    radius: float
    g: float
    lean: float
    roll_rate: float

    @property
    def heading_rate(self) -> float:
        """w = q1' in rad/s; for a positive lean and roll rate negative: the disc turns to the side it leans to."""
        sin, cos = np.sin(self.lean), np.cos(self.lean)
        a, b, c = 5 * self.radius * sin * cos, 6 * self.radius * self.roll_rate * cos, 4 * self.g * sin
        return float(-2 * c / (b + np.sign(b) * np.sqrt(b**2 - 4 * a * c)))

    def motion(self, t: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Heading and roll (rad), place of the contact (m) from the origin, heading along x at t = 0."""
        w, v = self.heading_rate, self.radius * self.roll_rate
        return w * t, self.roll_rate * t, v / w * np.sin(w * t), v / w * (1 - np.cos(w * t))


def biceps_force(
    activation: float, fibre_length: float, fibre_speed: float, peak_force: float, damping: float
) -> float:
    """Pull (N, positive) of a muscle without pennation: De Groote's curves with their published constants.

    Args:
        activation: 0 to 1.
        fibre_length: Over the optimal length.
        fibre_speed: Of lengthening, over the fastest shortening.
        peak_force: Peak isometric force, N.
        damping: beta.

    Source: De Groote et al., Ann. Biomed. Eng. 44 (2016) 2922-2936, appendix A and table of constants.
    """
    gauss = ((0.814, 1.06, 0.162, 0.0633), (0.433, 0.717, -0.0299, 0.2), (0.1, 1.0, 0.354, 0.0))
    active = sum(h * np.exp(-0.5 * ((fibre_length - c) / (w + s * fibre_length)) ** 2) for h, c, w, s in gauss)
    passive = (np.exp(4.0 * (fibre_length - 1) / 0.6) - 1) / (np.exp(4.0) - 1)
    speed = -0.318 * np.arcsinh(-8.149 * fibre_speed - 0.374) + 0.886
    return float(peak_force * (activation * active * speed + passive + damping * fibre_speed))


def governor(t: Floats, turns: float = 1.0) -> tuple[Floats, Floats, float]:
    """Height of the slider (m), angular speed (rad/s) of the benchmark's flyball governor with rigid couplers, and L.

    Left alone, it has one freedom: theta, the angle of the rods from straight down. With the moment of inertia I(theta)
    about the shaft, the moment of momentum L = I omega, effective mass M(theta) and potential energy V(theta),

        M theta'' = I' omega²/2 - M' theta'²/2 - V'.

    Dimensions are those of the benchmark's table: rods and shaft 1 m × 0.01 m × 0.01 m, slider 0.1 m, 3000 kg/m³, balls
    of 5 kg, pins 0.05 m from the axis, start at theta = 60° with ``turns`` per second. Couplers of 0.5 m from the
    middle of a rod to the slider below its pin make the slider's height 1 - cos(theta).
    """
    m, ball, slider, a, g = 0.3, 5.0, 3.0, 0.05, 9.81
    across, along = m * (1 + 0.01**2) / 12, m * 0.01**2 / 6

    def inertia(theta: float) -> tuple[float, float]:
        sine, cosine = np.sin(theta), np.cos(theta)
        value = ball * (a + sine) ** 2 + m * (a + sine / 2) ** 2 + across * sine**2 + along * cosine**2
        slope = 2 * ball * (a + sine) * cosine + m * (a + sine / 2) * cosine + 2 * (across - along) * sine * cosine
        return 2 * value + along + slider * 0.1**2 / 6, 2 * slope

    momentum = inertia(np.pi / 3)[0] * 2 * np.pi * turns

    def slope(_: float, y: Floats) -> list[float]:
        theta, rate = y
        value, by_theta = inertia(theta)
        mass = 2 * (ball + m / 4 + across) + slider * np.sin(theta) ** 2
        weight = (2 * ball + m + slider) * g * np.sin(theta)
        spin = (momentum / value) ** 2 * by_theta / 2
        return [rate, (spin - weight - slider * np.sin(theta) * np.cos(theta) * rate**2) / mass]

    found = solve_ivp(slope, (0.0, t[-1]), [np.pi / 3, 0.0], method="DOP853", t_eval=t, rtol=1e-12, atol=1e-12).y[0]
    omega = np.array([momentum / inertia(theta)[0] for theta in found])
    return 1 - np.cos(found), omega, float(momentum)
