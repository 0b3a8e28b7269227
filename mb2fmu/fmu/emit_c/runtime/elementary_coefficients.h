/* elementary_coefficients.h: constants of elementary.c. Made by scripts/elementary_coefficients.py. */
#ifndef MB2FMU_ELEMENTARY_COEFFICIENTS_H
#define MB2FMU_ELEMENTARY_COEFFICIENTS_H

#include <stdint.h>

#define MB2FMU_HALF_PI_1 1.5707963267923333 /* pi/2 in three parts: 36 bits, */
#define MB2FMU_HALF_PI_2 2.5633441515839558e-12 /* the next 36 bits, */
#define MB2FMU_HALF_PI_3 1.0562999066987428e-23 /* and the rest */
#define MB2FMU_HALF_PI_HI 1.5707963267948966 /* pi/2 as a pair */
#define MB2FMU_HALF_PI_LO 6.123233995736766e-17
#define MB2FMU_TWO_OVER_PI 0.6366197723675814
#define MB2FMU_ANGLE_LIMIT 131072.0 /* 2^17: the quadrant has at most 17 bits, 36 + 17 = 53 */
#define MB2FMU_LN2_HI 0.6931471805598903 /* log 2: 42 bits, */
#define MB2FMU_LN2_LO 5.497923018708371e-14 /* and the rest */
#define MB2FMU_ONE_OVER_LN2 1.4426950408889634
#define MB2FMU_THIRD_HI 0.3333333333333333 /* 1/3 as a pair */
#define MB2FMU_THIRD_LO 1.850371707708594e-17
#define MB2FMU_SQRT_2 1.4142135623730951
#define MB2FMU_ERFC_CENTRE 3.0
#define MB2FMU_TINY 3.725290298461914e-09 /* f(x) = x for odd functions of less, to the last bit */
#define MB2FMU_LARGE 268435456.0 /* sqrt(x^2 + 1) = x for more, to the last bit */
#define MB2FMU_SMALLEST_NORMAL 2.2250738585072014e-308
#define MB2FMU_TWO_TO_MINUS_42 2.2737367544323206e-13

/* (x - sin x) / x^3 in z = x^2; largest relative error of the function 2^-56.39 */
#define MB2FMU_SIN_0 (0.1666666666666663)
#define MB2FMU_SIN_1 (-0.008333333333322118)
#define MB2FMU_SIN_2 (0.00019841269829589452)
#define MB2FMU_SIN_3 (-2.7557313621354213e-06)
#define MB2FMU_SIN_4 (2.5050747757719632e-08)
#define MB2FMU_SIN_5 (-1.5896229849177328e-10)

/* (cos x - 1 + x^2 / 2) / x^4 in z = x^2; largest relative error of the function 2^-59.66 */
#define MB2FMU_COS_0 (0.041666666666666595)
#define MB2FMU_COS_1 (-0.0013888888888873056)
#define MB2FMU_COS_2 (2.4801587288851606e-05)
#define MB2FMU_COS_3 (-2.7557314179267295e-07)
#define MB2FMU_COS_4 (2.087570083787149e-09)
#define MB2FMU_COS_5 (-1.1358536303936036e-11)

/* (exp x - 1 - x - x^2 / 2) / x^3; largest relative error of the function 2^-59.41 */
#define MB2FMU_EXP_TERMS 11
static const double mb2fmu_exp_coefficients[] = {
    0.16666666666666666,
    0.04166666666666668,
    0.008333333333333314,
    0.001388888888887711,
    0.00019841269841341743,
    2.4801587341263545e-05,
    2.7557319111819033e-06,
    2.7557258684417885e-07,
    2.505217604316588e-08,
    2.0919651326789284e-09,
    1.605655177300296e-10,
};

/* (artanh x - x - x^3 / 3) / x^5 in z = x^2; largest relative error of the function 2^-66.41 */
#define MB2FMU_LOG_TERMS 8
static const double mb2fmu_log_coefficients[] = {
    0.1999999999999999,
    0.14285714285722528,
    0.11111111108774371,
    0.09090909434444404,
    0.07692278481754783,
    0.06668157009962052,
    0.05837442322530086,
    0.05994241746238674,
};

/* (x - atan x) / x^3 in z = x^2; largest relative error of the function 2^-58.16 */
#define MB2FMU_ATAN_TERMS 13
static const double mb2fmu_atan_coefficients[] = {
    0.3333333333333333,
    -0.19999999999999885,
    0.14285714285695433,
    -0.11111111109566564,
    0.09090909016133338,
    -0.07692305360508517,
    0.06666617384089632,
    -0.0588162577610227,
    0.052555584604143175,
    -0.047055667019863225,
    0.040549615187078364,
    -0.029608331688396397,
    0.01297706652112631,
};

/* (asin x - x) / x^3 in z = x^2; largest relative error of the function 2^-59.15 */
#define MB2FMU_ASIN_TERMS 14
static const double mb2fmu_asin_coefficients[] = {
    0.1666666666666666,
    0.07500000000002498,
    0.04464285713972777,
    0.030381944642408086,
    0.022372151679083702,
    0.01735294358867649,
    0.0139618994046063,
    0.011585706811988365,
    0.009483920501573257,
    0.010009712506840374,
    0.0006826051186559167,
    0.02482505062061009,
    -0.02614742695923566,
    0.03364247298085486,
};

/* erf x / x - 1 in z = x^2; largest relative error of the function 2^-56.33 */
#define MB2FMU_ERF_TERMS 14
static const double mb2fmu_erf_coefficients[] = {
    0.1283791670955126,
    -0.37612638903183754,
    0.11283791670955119,
    -0.026866170645129733,
    0.005223977625422086,
    -0.0008548327021853204,
    0.00012055332899358123,
    -1.4925647465122388e-05,
    1.6462043407868645e-06,
    -1.6364614422318199e-07,
    1.4792145759315133e-08,
    -1.2163041953483107e-09,
    8.70378996786844e-11,
    -4.222896391151973e-12,
};

/* erfc(x) exp(x^2) x in u = (x - centre) / (x + centre), 1 <= x <= 6; largest relative error of the function 2^-54.31 */
#define MB2FMU_ERFC_TERMS 20
static const double mb2fmu_erfc_coefficients[] = {
    0.5370034535441699,
    0.09530622695922802,
    -0.14658304803289104,
    0.13988054760176993,
    -0.095469750306626,
    0.0463502633312951,
    -0.014019825626262665,
    0.0009108226889851839,
    0.0012428761617204877,
    -0.00041254378879762815,
    -8.460825214501514e-05,
    6.897994121569905e-05,
    6.464341458809584e-06,
    -1.1110191818037925e-05,
    -9.949914373802246e-07,
    1.880655896512829e-06,
    3.0637400052333276e-07,
    -3.048325876397116e-07,
    -1.0663121472597952e-07,
    5.240955552551746e-09,
};

/* 64 zeros, then 2/pi, bit by bit */
static const uint64_t mb2fmu_two_over_pi_bits[] = {
    0x0000000000000000u,
    0xa2f9836e4e441529u,
    0xfc2757d1f534ddc0u,
    0xdb6295993c439041u,
    0xfe5163abdebbc561u,
    0xb7246e3a424dd2e0u,
    0x06492eea09d1921cu,
    0xfe1deb1cb129a73eu,
    0xe88235f52ebb4484u,
    0xe99c7026b45f7e41u,
    0x3991d639835339f4u,
    0x9c845f8bbdf9283bu,
    0x1ff897ffde05980fu,
    0xef2f118b5a0a6d1fu,
    0x6d367ecf27cb09b7u,
    0x4f463f669e5fea2du,
    0x7527bac7ebe5f17bu,
    0x3d0739f78a5292eau,
    0x6bfb5fb11f8d5d08u,
    0x56033046fc7b6babu,
    0xf0cfbc209af4361du,
};

#endif
