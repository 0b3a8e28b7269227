/* protocol.c: what every call begins and ends with; see protocol.h. */
#include "protocol.h"

static const char *mb2fmu_mode_name(int mode)
{
    switch (mode) {
    case MB2FMU_INSTANTIATED:
        return "before Initialization Mode";
    case MB2FMU_INITIALIZATION:
        return "in Initialization Mode";
    case MB2FMU_EVENT:
        return "in Event Mode";
    case MB2FMU_CONTINUOUS:
        return "in Continuous-Time Mode";
    case MB2FMU_STEP:
        return MB2FMU_FMI == 2 ? "between communication steps" : "in Step Mode";
    case MB2FMU_STEP_FAILED:
        return "after a step that could not be made";
    case MB2FMU_INTERMEDIATE:
        return "in Intermediate Update Mode";
    case MB2FMU_TERMINATED:
        return "after termination";
    default:
        return "after an error (reset the FMU, or set a state that was saved before)";
    }
}

/* While a communication step is under way the host may call what Intermediate Update Mode allows and nothing else,
 * after a refused call too: what would take the FMU out of its failed state would take it out of the step. */
static int mb2fmu_is_allowed(const mb2fmu_instance *instance, int modes)
{
    if (instance->problem != NULL && (modes & MB2FMU_INTERMEDIATE) == 0) {
        return 0;
    }
    return (instance->now.mode & modes) != 0;
}

static MB2FMU_NOINLINE mb2fmu_instance *mb2fmu_admit(mb2fmu_call *call, void *handle, const mb2fmu_rule *rule)
{
    mb2fmu_instance *const instance = mb2fmu_handle_find(handle);
    int modes;
    call->instance = instance;
    if (instance == NULL) {
        return NULL;
    }
    call->outer = instance->function;
    instance->host = call->host;
    instance->function = rule->name;
    instance->calls += 1;
    modes = instance->kind == MB2FMU_MODEL_EXCHANGE ? rule->model_exchange : rule->co_simulation;
    if (mb2fmu_is_allowed(instance, modes)) {
        return instance;
    }
    if (modes == 0) {
        (void)mb2fmu_fail(instance, MB2FMU_ERROR, "the FMU does not offer this function in %s",
                          instance->kind == MB2FMU_MODEL_EXCHANGE ? "Model Exchange" : "Co-Simulation");
    } else {
        (void)mb2fmu_fail(instance, MB2FMU_ERROR, "this call is not allowed %s",
                          mb2fmu_mode_name(instance->problem != NULL ? MB2FMU_INTERMEDIATE : instance->now.mode));
    }
    return NULL;
}

static mb2fmu_instance *mb2fmu_enter(mb2fmu_call *call, void *handle, const mb2fmu_rule *rule)
{
    mb2fmu_environment_enter(&call->host);
    return mb2fmu_admit(call, handle, rule);
}

static enum mb2fmu_status mb2fmu_leave(mb2fmu_call *call, enum mb2fmu_status status)
{
    mb2fmu_instance *const instance = call->instance;
    if (instance != NULL) {
        instance->function = call->outer;
        instance->calls -= 1;
        if (status == MB2FMU_ERROR) {
            instance->now.mode = MB2FMU_FAILED;
            instance->refused = 1;
        }
    }
    mb2fmu_environment_leave(&call->host);
    return status;
}

static enum mb2fmu_status mb2fmu_go_to(mb2fmu_instance *instance, enum mb2fmu_mode mode)
{
    instance->now.mode = (int)mode;
    return MB2FMU_OK;
}

static MB2FMU_NOINLINE enum mb2fmu_status mb2fmu_reset(mb2fmu_instance *instance)
{
    mb2fmu_instance_reset(instance);
    return MB2FMU_OK;
}

static MB2FMU_NOINLINE enum mb2fmu_status mb2fmu_absent(mb2fmu_instance *instance, size_t n, const char *type)
{
    return n == 0 ? MB2FMU_OK : mb2fmu_fail(instance, MB2FMU_ERROR, "the FMU has no variables of type %s", type);
}
