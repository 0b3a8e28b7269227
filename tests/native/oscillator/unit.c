/* unit.c: the oscillator as one translation unit, in the order of a generated one. */
#include "model_config.h"

#include "linear_algebra.c"

#include "model.c"

#include "solver_methods.c"
#include "solver_step_loop.c"
#include "cosimulation.c"

#include "shell.c"
