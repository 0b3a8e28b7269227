/* model.c: the tables of this unit. Made by mb2fmu; changes are lost with the next export. */
#include "model_config.h"

#include "model_tables.h"

const mb2fmu_settings MB2FMU_UNIT(settings) = {
    "{01234567-89ab-5cde-8f01-23456789abcd}",
    1, /* solver */
    1e-06, /* tolerance */
    0.0, /* internal step, s */
    0.0, /* start, s */
    535045, /* internal steps of adaptive solvers */
    10000000, /* internal steps of fixed size */
};

const mb2fmu_variable model_variables[MB2FMU_N_VARIABLES] = {
    {MB2FMU_SOURCE_TIME, MB2FMU_CAUSALITY_INDEPENDENT, MB2FMU_VARIABILITY_CONTINUOUS, MB2FMU_INITIAL_NONE, 0, MB2FMU_NAN, -MB2FMU_INFINITY, MB2FMU_INFINITY, 1.0, "time"},
};
/* equations.c: equations of this unit. Made by mb2fmu; changes are lost with the next export.
 *
 * A translation unit of its own: compile as unit.c says. With MB2FMU_AVX2 defined and the compiler's option for AVX2 it
 * is the variant for processors that have it, with the same bits. */
#include "equations.h"

#include "elementary.c"
#include "linear_algebra.c"
#include "lookup.c"

static const double model_table_0_0_breaks[] = {0.0, 0.5, 1.0};
static const double model_table_0_0_coefficients[] = {(-1.0), 1.0, 2.0, 0.5};
static const mb2fmu_table model_table_0_0 = {2, 2, model_table_0_0_breaks,
    model_table_0_0_coefficients};

static int equations_prepare(const double p[], double w[], double work[])
{
    const double v0 = p[0]; /* m */
    const double v1 = p[1]; /* k */
    const double v2 = v0 * v1;
    const double v3 = mb2fmu_pow(v1, 0.3);
    const double v4 = v0 * v3;
    w[0] = v4;
    w[1] = v2;
    (void)work;
    return 0;
}

static int equations_rhs(double t, const double x[], const double r[], const double p[], const double w[],
                         double work[], double dx[])
{
    const double v0 = x[0]; /* q */
    const double v1 = (v0 < (-0.1)) ? 1.0 : 0.0;
    const double v2 = x[1]; /* * / u */
    const double v3 = mb2fmu_lookup(&model_table_0_0, v2);
    const double v4 = r[0]; /* f */
    const double v5 = w[1];
    const double v6 = mb2fmu_max(v4, v5);
    const double v7 = (v1 != 0.0) ? v3 : v6;
    double v8, v9;
    mb2fmu_sincos(v0, &v8, &v9);
    const double v10 = p[0]; /* m */
    const double v11 = p[1]; /* k */
    double f0[20];
    f0[0] = v10;
    f0[1] = v8;
    f0[2] = v11;
    f0[3] = v2;
    f0[4] = v0;
    f0[5] = v10;
    f0[6] = v4;
    f0[7] = v11;
    f0[8] = v11;
    f0[9] = v9;
    f0[10] = v10;
    f0[11] = v2;
    f0[12] = v2;
    f0[13] = v4;
    f0[14] = v11;
    f0[15] = v10;
    if (mb2fmu_lu_factor(4, f0) != 0) {
        return 1; /* a "matrix" */
    }
    const double v12 = t;
    double s0[4] = {v7, v2, v12, 1e-300};
    mb2fmu_lu_solve(4, f0, s0);
    const double v13 = s0[0];
    const double v14 = s0[1];
    const double v15 = s0[2];
    const double v16 = s0[3];
    const double v17 = v13 + v14;
    const double v18 = v15 + v17;
    const double v19 = v16 + v18;
    dx[0] = v2;
    dx[1] = v19;
    (void)work;
    return 0;
}

static int equations_position(double t, const double x[], const double r[], const double p[], const double w[],
                              double work[], double y[])
{
    const double v0 = x[0]; /* q */
    const double v1 = x[1]; /* * / u */
    const double v2 = v0 + v1;
    const double v3 = mb2fmu_sin(v2);
    y[0] = v3;
    (void)t;
    (void)r;
    (void)p;
    (void)w;
    (void)work;
    return 0;
}

static int equations_velocity(double t, const double x[], const double r[], const double p[], const double w[],
                              double work[], double y[])
{
    (void)t;
    (void)x;
    (void)r;
    (void)p;
    (void)w;
    (void)work;
    (void)y;
    return 0;
}

static int equations_acceleration(double t, const double x[], const double r[], const double p[], const double w[],
                                  double work[], double y[])
{
    (void)t;
    (void)x;
    (void)r;
    (void)p;
    (void)w;
    (void)work;
    (void)y;
    return 0;
}

static int equations_dependent_speeds(double t, const double x[], const double r[], const double p[],
                                      const double w[], double work[], double y[])
{
    (void)t;
    (void)x;
    (void)r;
    (void)p;
    (void)w;
    (void)work;
    (void)y;
    return 0;
}

static int equations_accelerations(double t, const double x[], const double r[], const double p[], const double w[],
                                   double work[], double y[])
{
    (void)t;
    (void)x;
    (void)r;
    (void)p;
    (void)w;
    (void)work;
    (void)y;
    return 0;
}

const mb2fmu_equations MB2FMU_VARIANT(equations) = {
    equations_prepare,
    equations_rhs,
    equations_position,
    equations_velocity,
    equations_acceleration,
    equations_dependent_speeds,
    equations_accelerations,
};
/* derived.c: equations of this unit. Made by mb2fmu; changes are lost with the next export.
 *
 * A translation unit of its own: compile as unit.c says, once for all kinds of processors. */
#include "equations.h"

#include "elementary.c"
#include "linear_algebra.c"
#include "lookup.c"

static const double model_table_0_0_breaks[] = {0.0, 0.5, 1.0};
static const double model_table_0_0_coefficients[] = {(-1.0), 1.0, 2.0, 0.5};
static const mb2fmu_table model_table_0_0 = {2, 2, model_table_0_0_breaks,
    model_table_0_0_coefficients};

static const double model_table_0_1_breaks[] = {0.0, 0.5, 1.0};
static const double model_table_0_1_coefficients[] = {(-1.0), 2.0};
static const mb2fmu_table model_table_0_1 = {2, 1, model_table_0_1_breaks,
    model_table_0_1_coefficients};

static int equations_prepare_derivatives(const double p[], double w[], double work[])
{
    const double v0 = p[0]; /* m */
    const double v1 = p[1]; /* k */
    const double v2 = v0 * v1;
    const double v3 = mb2fmu_pow(v1, 0.3);
    const double v4 = mb2fmu_pow(v1, (-0.7));
    const double v5 = 0.3 * v4;
    w[2] = v2;
    w[3] = v3;
    w[4] = v5;
    (void)work;
    return 0;
}

static int equations_tangent(double t, const double x[], const double r[], const double p[], const double w[],
                             double work[], const double s[], double out[])
{
    const double v0 = x[0]; /* q */
    const double v1 = (v0 < (-0.1)) ? 1.0 : 0.0;
    const double v2 = x[1]; /* * / u */
    const double v3 = mb2fmu_lookup(&model_table_0_0, v2);
    const double v4 = r[0]; /* f */
    const double v5 = w[2];
    const double v6 = mb2fmu_max(v4, v5);
    const double v7 = (v1 != 0.0) ? v3 : v6;
    const double v8 = v0 + v2;
    const double v9 = mb2fmu_lookup(&model_table_0_1, v2);
    const double v10 = s[2];
    const double v11 = v10 * v9;
    const double v12 = p[1]; /* k */
    const double v13 = s[4];
    const double v14 = v12 * v13;
    const double v15 = p[0]; /* m */
    const double v16 = s[5];
    const double v17 = v15 * v16;
    const double v18 = v14 + v17;
    const double v19 = (v5 < v4) ? 1.0 : 0.0;
    const double v20 = s[3];
    const double v21 = (v19 != 0.0) ? v20 : v18;
    const double v22 = (v1 != 0.0) ? v11 : v21;
    const double v23 = w[4];
    const double v24 = v16 * v23;
    const double v25 = w[3];
    const double v26 = v25 * v13;
    const double v27 = v15 * v24;
    const double v28 = v26 + v27;
    const double v29 = s[1];
    const double v30 = v29 + v10;
    const double a0[2] = {v0, v8};
    double sin0[2], cos0[2];
    mb2fmu_sincos_each(2, a0, sin0, cos0);
    const double v31 = sin0[0];
    const double v32 = cos0[0];
    const double v33 = cos0[1];
    double f0[20];
    f0[0] = v15;
    f0[1] = v31;
    f0[2] = v12;
    f0[3] = v2;
    f0[4] = v0;
    f0[5] = v15;
    f0[6] = v4;
    f0[7] = v12;
    f0[8] = v12;
    f0[9] = v32;
    f0[10] = v15;
    f0[11] = v2;
    f0[12] = v2;
    f0[13] = v4;
    f0[14] = v12;
    f0[15] = v15;
    if (mb2fmu_lu_factor(4, f0) != 0) {
        return 1; /* a "matrix" */
    }
    const double v34 = t;
    double s0[4] = {v7, v2, v34, 1e-300};
    mb2fmu_lu_solve(4, f0, s0);
    const double v35 = s0[0];
    const double v36 = s0[1];
    const double v37 = s0[2];
    const double v38 = s0[3];
    const double v39 = v32 * v29;
    const double v40 = v31 * v29;
    const double v41 = v35 * v13;
    const double v42 = v36 * v39;
    const double v43 = v37 * v16;
    const double v44 = v38 * v10;
    const double v45 = v35 * v29;
    const double v46 = v36 * v13;
    const double v47 = v37 * v20;
    const double v48 = v38 * v16;
    const double v49 = v35 * v16;
    const double v50 = v36 * v40;
    const double v51 = v37 * v13;
    const double v52 = v35 * v10;
    const double v53 = v36 * v20;
    const double v54 = v38 * v13;
    const double v55 = v22 - v41;
    const double v56 = v55 - v42;
    const double v57 = v56 - v43;
    const double v58 = v57 - v44;
    const double v59 = v10 - v45;
    const double v60 = v59 - v46;
    const double v61 = v60 - v47;
    const double v62 = v61 - v48;
    const double v63 = s[0];
    const double v64 = v63 + v50;
    const double v65 = v64 - v44;
    const double v66 = v65 - v49;
    const double v67 = v66 - v51;
    const double v68 = v43 + v52;
    const double v69 = v53 + v68;
    const double v70 = v54 + v69;
    const double v71 = -v70;
    double s1[4] = {v58, v62, v67, v71};
    mb2fmu_lu_solve(4, f0, s1);
    const double v72 = s1[0];
    const double v73 = s1[1];
    const double v74 = s1[2];
    const double v75 = s1[3];
    const double v76 = v72 + v73;
    const double v77 = v74 + v76;
    const double v78 = v75 + v77;
    const double v79 = v30 * v33;
    out[0] = v10;
    out[1] = v78;
    out[2] = v79;
    out[3] = v28;
    (void)work;
    return 0;
}

static int equations_adjoint(double t, const double x[], const double r[], const double p[], const double w[],
                             double work[], const double bar[], double sbar[])
{
    const double v0 = x[0]; /* q */
    const double v1 = (v0 < (-0.1)) ? 1.0 : 0.0;
    const double v2 = x[1]; /* * / u */
    const double v3 = mb2fmu_lookup(&model_table_0_0, v2);
    const double v4 = r[0]; /* f */
    const double v5 = w[2];
    const double v6 = mb2fmu_max(v4, v5);
    const double v7 = (v1 != 0.0) ? v3 : v6;
    const double v8 = v0 + v2;
    const double v9 = mb2fmu_lookup(&model_table_0_1, v2);
    const double v10 = (v5 < v4) ? 1.0 : 0.0;
    const double v11 = w[3];
    const double v12 = bar[3];
    const double v13 = v11 * v12;
    const double v14 = w[4];
    const double v15 = v12 * v14;
    const double a0[2] = {v0, v8};
    double sin0[2], cos0[2];
    mb2fmu_sincos_each(2, a0, sin0, cos0);
    const double v16 = sin0[0];
    const double v17 = cos0[0];
    const double v18 = cos0[1];
    const double v19 = p[0]; /* m */
    const double v20 = p[1]; /* k */
    double f0[20];
    f0[0] = v19;
    f0[1] = v16;
    f0[2] = v20;
    f0[3] = v2;
    f0[4] = v0;
    f0[5] = v19;
    f0[6] = v4;
    f0[7] = v20;
    f0[8] = v20;
    f0[9] = v17;
    f0[10] = v19;
    f0[11] = v2;
    f0[12] = v2;
    f0[13] = v4;
    f0[14] = v20;
    f0[15] = v19;
    if (mb2fmu_lu_factor(4, f0) != 0) {
        return 1; /* a "matrix" */
    }
    const double v21 = t;
    double s0[4] = {v7, v2, v21, 1e-300};
    mb2fmu_lu_solve(4, f0, s0);
    const double v22 = s0[0];
    const double v23 = s0[1];
    const double v24 = s0[2];
    const double v25 = s0[3];
    const double v26 = bar[2];
    const double v27 = v26 * v18;
    double f1[20];
    f1[0] = v19;
    f1[1] = v0;
    f1[2] = v20;
    f1[3] = v2;
    f1[4] = v16;
    f1[5] = v19;
    f1[6] = v17;
    f1[7] = v4;
    f1[8] = v20;
    f1[9] = v4;
    f1[10] = v19;
    f1[11] = v20;
    f1[12] = v2;
    f1[13] = v20;
    f1[14] = v2;
    f1[15] = v19;
    if (mb2fmu_lu_factor(4, f1) != 0) {
        return 1; /* a "matrix" */
    }
    const double v28 = bar[1];
    double s1[4] = {v28, v28, v28, v28};
    mb2fmu_lu_solve(4, f1, s1);
    const double v29 = s1[0];
    const double v30 = s1[1];
    const double v31 = s1[2];
    const double v32 = s1[3];
    const double v33 = v22 * v29;
    const double v34 = v22 * v30;
    const double v35 = v23 * v30;
    const double v36 = v24 * v30;
    const double v37 = v25 * v30;
    const double v38 = v22 * v31;
    const double v39 = v24 * v31;
    const double v40 = v22 * v32;
    const double v41 = v23 * v32;
    const double v42 = v25 * v32;
    const double v43 = (v1 != 0.0) ? v29 : 0.0;
    const double v44 = (v1 != 0.0) ? 0.0 : v29;
    const double v45 = (v10 != 0.0) ? v44 : 0.0;
    const double v46 = (v10 != 0.0) ? 0.0 : v44;
    const double v47 = v20 * v46;
    const double v48 = v9 * v43;
    const double v49 = v29 + v32;
    const double v50 = v24 * v49;
    const double v51 = v46 + v15;
    const double v52 = v19 * v51;
    const double v53 = v52 - v37;
    const double v54 = v53 - v38;
    const double v55 = v54 - v50;
    const double v56 = v13 + v47;
    const double v57 = v56 - v33;
    const double v58 = v57 - v35;
    const double v59 = v58 - v39;
    const double v60 = v59 - v42;
    const double v61 = v45 - v36;
    const double v62 = v61 - v41;
    const double v63 = v29 + v31;
    const double v64 = v25 * v63;
    const double v65 = bar[0];
    const double v66 = v65 + v27;
    const double v67 = v30 + v66;
    const double v68 = v48 + v67;
    const double v69 = v68 - v40;
    const double v70 = v69 - v64;
    const double v71 = v16 * v31;
    const double v72 = v17 * v29;
    const double v73 = v71 - v72;
    const double v74 = v23 * v73;
    const double v75 = v27 + v74;
    const double v76 = v75 - v34;
    sbar[0] = v31;
    sbar[1] = v76;
    sbar[2] = v70;
    sbar[3] = v62;
    sbar[4] = v60;
    sbar[5] = v55;
    (void)work;
    return 0;
}

static int equations_jacobian(double t, const double x[], const double r[], const double p[], const double w[],
                              double work[], double values[], double dfdt[])
{
    const double v0 = x[0]; /* q */
    const double v1 = (v0 < (-0.1)) ? 1.0 : 0.0;
    const double v2 = x[1]; /* * / u */
    const double v3 = mb2fmu_lookup(&model_table_0_0, v2);
    const double v4 = r[0]; /* f */
    const double v5 = w[2];
    const double v6 = mb2fmu_max(v4, v5);
    const double v7 = (v1 != 0.0) ? v3 : v6;
    const double v8 = mb2fmu_lookup(&model_table_0_1, v2);
    const double v9 = (v1 != 0.0) ? v8 : 0.0;
    double v10, v11;
    mb2fmu_sincos(v0, &v10, &v11);
    const double v12 = p[0]; /* m */
    const double v13 = p[1]; /* k */
    double f0[20];
    f0[0] = v12;
    f0[1] = v10;
    f0[2] = v13;
    f0[3] = v2;
    f0[4] = v0;
    f0[5] = v12;
    f0[6] = v4;
    f0[7] = v13;
    f0[8] = v13;
    f0[9] = v11;
    f0[10] = v12;
    f0[11] = v2;
    f0[12] = v2;
    f0[13] = v4;
    f0[14] = v13;
    f0[15] = v12;
    if (mb2fmu_lu_factor(4, f0) != 0) {
        return 1; /* a "matrix" */
    }
    const double v14 = t;
    double s0[4] = {v7, v2, v14, 1e-300};
    mb2fmu_lu_solve(4, f0, s0);
    const double v15 = s0[0];
    const double v16 = s0[1];
    const double v17 = s0[3];
    const double v18 = v11 * v16;
    const double v19 = v10 * v16;
    const double v20 = -v18;
    const double v21 = -v15;
    double s1[4] = {v20, v21, v19, 0.0};
    mb2fmu_lu_solve(4, f0, s1);
    const double v22 = s1[0];
    const double v23 = s1[1];
    const double v24 = s1[2];
    const double v25 = s1[3];
    const double v26 = v9 - v17;
    const double v27 = -v17;
    double s2[4] = {v26, 1.0, v27, v21};
    mb2fmu_lu_solve(4, f0, s2);
    const double v28 = s2[0];
    const double v29 = s2[1];
    const double v30 = s2[2];
    const double v31 = s2[3];
    double s3[4] = {0.0, 0.0, 1.0, 0.0};
    mb2fmu_lu_solve(4, f0, s3);
    const double v32 = s3[0];
    const double v33 = s3[1];
    const double v34 = s3[2];
    const double v35 = s3[3];
    const double v36 = v22 + v23;
    const double v37 = v24 + v36;
    const double v38 = v25 + v37;
    const double v39 = v28 + v29;
    const double v40 = v30 + v39;
    const double v41 = v31 + v40;
    const double v42 = v32 + v33;
    const double v43 = v34 + v42;
    const double v44 = v35 + v43;
    dfdt[0] = 0.0;
    values[1] = 1.0;
    values[2] = v38;
    values[3] = v41;
    dfdt[1] = v44;
    (void)work;
    return 0;
}

static const char *const model_failures[] = {
    "the matrix of a \042matrix\042 is singular",
};

const mb2fmu_derivatives MB2FMU_VARIANT(derivatives) = {
    equations_prepare_derivatives,
    equations_tangent,
    equations_adjoint,
    equations_jacobian,
    5,
    0,
    1,
    model_failures,
};
