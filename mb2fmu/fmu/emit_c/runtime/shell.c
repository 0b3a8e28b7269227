/* shell.c: the FMI shell, all of it, in an order that works; unit.c includes it after the model and the solvers.
 * MB2FMU_FMI says which version. Where the FMU is compiled as source code, FMI2_FUNCTION_PREFIX or
 * FMI3_FUNCTION_PREFIX is defined before (FMI 2.0.5 section 2.1.1, FMI 3.0.2 section 2.6.1). */
#include "floating_point.c"
#include "handles.c"
#include "log.c"
#include "state_bytes.c"

#if MB2FMU_N_MODES > 0
#include "events.c"
#endif
#include "values.c"
#include "vectors.c"

#include "instance.c"
#include "start.c"

#include "communication.c"
#include "derivatives.c"
#include "protocol.c"
#include "state.c"

#if MB2FMU_FMI == 2
#include "protocol_fmi2.c"

#include "fmi2.c"
#include "fmi2_co_simulation.c"
#include "fmi2_model_exchange.c"
#else
#include "protocol_fmi3.c"

#include "arrays_fmi3.c"
#include "fmi3.c"
#include "fmi3_absent.c"
#include "fmi3_co_simulation.c"
#include "fmi3_model_exchange.c"
#endif
