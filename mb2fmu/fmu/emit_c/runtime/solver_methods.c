/* solver_methods.c: the methods of integration, one row each. A new one is a file with a step and a dense output, and a
 * row here; the enumeration that importers see has the same numbers (mb2fmu/fmu/integration_method_table.py).
 */
#include "solver.h"

#include "solver_bogacki_shampine.c"
#include "solver_dopri5.c"
#include "solver_euler.c"
#include "solver_rk4.c"
#include "solver_rosenbrock.c"

/* In the order of their numbers, from 1 on. Exponents with history: of Dormand-Prince those of Hairer and others, IV.2;
 * of Bogacki-Shampine Gustafsson's 0.7/k and 0.4/k, since the former reject a third of its steps where forces turn. */
static const mb2fmu_method mb2fmu_methods[] = {
    /* name, step, dense output, order, dense order, last stage, control, 64ths, with history, least error */
    {"explicit", mb2fmu_dopri5_step, mb2fmu_dopri5_dense, 5, 4, 6, MB2FMU_PROPORTIONAL_INTEGRAL, 13, {11, 2}, 1e-4},
    {"rk4", mb2fmu_rk4_step, mb2fmu_rk4_dense, 4, 3, -1, MB2FMU_FIXED_STEPS, 0, {0, 0}, 0.0},
    {"euler", mb2fmu_euler_step, mb2fmu_euler_dense, 1, 1, -1, MB2FMU_FIXED_STEPS, 0, {0, 0}, 0.0},
    {"implicit", mb2fmu_rosenbrock_step, mb2fmu_rosenbrock_dense, 4, 3, -1, MB2FMU_PREDICTIVE, 16, {16, 16}, 1e-2},
    {"bogacki_shampine", mb2fmu_bogacki_shampine_step, mb2fmu_bogacki_shampine_dense, 3, 3, 3,
     MB2FMU_PROPORTIONAL_INTEGRAL, 21, {15, 9}, 1e-4},
};

#define MB2FMU_N_SOLVERS ((int)(sizeof mb2fmu_methods / sizeof mb2fmu_methods[0]))

static int mb2fmu_solver_known(int64_t solver)
{
    return solver >= 1 && solver <= MB2FMU_N_SOLVERS;
}

static const mb2fmu_method *mb2fmu_method_of(const mb2fmu_integrator_memory *memory)
{
    return &mb2fmu_methods[memory->solver - 1];
}
