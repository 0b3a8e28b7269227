/* Complex functions of the Windows C library, which wine 8 declares and lacks; NumPy asks for them.
   Enough for derivatives by complex steps; not for the edges of their domains. */
#include <math.h>

typedef double _Complex Double;
typedef float _Complex Float;
#define RE(z) (((double *)&(z))[0])
#define IM(z) (((double *)&(z))[1])

static Double pair(double re, double im) {
  Double z;
  RE(z) = re;
  IM(z) = im;
  return z;
}
static double mb_cabs(Double z) { return hypot(RE(z), IM(z)); }
static double mb_carg(Double z) { return atan2(IM(z), RE(z)); }
static Double mb_ccos(Double z) { return pair(cos(RE(z)) * cosh(IM(z)), -sin(RE(z)) * sinh(IM(z))); }
static Double mb_csin(Double z) { return pair(sin(RE(z)) * cosh(IM(z)), cos(RE(z)) * sinh(IM(z))); }
static Double mb_ccosh(Double z) { return pair(cosh(RE(z)) * cos(IM(z)), sinh(RE(z)) * sin(IM(z))); }
static Double mb_csinh(Double z) { return pair(sinh(RE(z)) * cos(IM(z)), cosh(RE(z)) * sin(IM(z))); }
static Double mb_cexp(Double z) { return pair(exp(RE(z)) * cos(IM(z)), exp(RE(z)) * sin(IM(z))); }
static Double mb_clog(Double z) { return pair(log(mb_cabs(z)), mb_carg(z)); }
static Double mb_csqrt(Double z) {
  double a = sqrt((mb_cabs(z) + fabs(RE(z))) / 2), b = a > 0 ? IM(z) / (2 * a) : 0;
  return RE(z) >= 0 ? pair(a, b) : pair(fabs(b), copysign(a, IM(z)));
}
static Double mb_ctan(Double z) {
  double t = tan(RE(z)), h = tanh(IM(z)), n = 1 + t * t * h * h;
  return pair(t * (1 - h * h) / n, h * (1 + t * t) / n);
}
static Double mb_ctanh(Double z) {
  Double w = mb_ctan(pair(-IM(z), RE(z)));
  return pair(IM(w), -RE(w));
}
static Double mb_catan(Double z) {
  double a = RE(z), b = IM(z);
  return pair(atan2(2 * a, 1 - a * a - b * b) / 2, log((a * a + (b + 1) * (b + 1)) / (a * a + (b - 1) * (b - 1))) / 4);
}
static Double mb_cpow(Double x, Double y) {
  Double l = mb_clog(x);
  if (mb_cabs(x) == 0) return pair(0, 0);
  return mb_cexp(pair(RE(l) * RE(y) - IM(l) * IM(y), RE(l) * IM(y) + IM(l) * RE(y)));
}

/* Exported three times: for double, float, and long double, which is double there. */
#define ONE(name)                                             \
  __declspec(dllexport) Double x_##name(Double z) { return mb_##name(z); }   \
  __declspec(dllexport) Float x_##name##f(Float z) { return (Float)mb_##name((Double)z); }
#define REAL(name)                                            \
  __declspec(dllexport) double x_##name(Double z) { return mb_##name(z); }   \
  __declspec(dllexport) float x_##name##f(Float z) { return (float)mb_##name((Double)z); }
#define TWO(name)                                             \
  __declspec(dllexport) Double x_##name(Double y, Double z) { return mb_##name(y, z); }   \
  __declspec(dllexport) Float x_##name##f(Float y, Float z) { return (Float)mb_##name((Double)y, (Double)z); }
ONE(ccos) ONE(csin) ONE(ccosh) ONE(csinh) ONE(cexp) ONE(clog) ONE(csqrt) ONE(ctan) ONE(ctanh) ONE(catan)
REAL(cabs) REAL(carg) TWO(cpow)
