/* component_exports.h: included once for each resource, with METHOD, how its methods' names begin, and PREFIX, how
 * their functions are called here. */

#define AFTER(c_name, wit_name) AFTER_CALL(PREFIX(after_##c_name), METHOD wit_name)

/* A method without arguments that gives a status. */
#define PLAIN(c_name, wit_name, function)                                                     \
    EXPORT(METHOD wit_name) uint32_t PREFIX(c_name)(holder *self)                             \
    {                                                                                         \
        return ended(function(self->unit));                                                   \
    }

/* Values of a type whose list has the same bytes in C and in WIT. */
#define VALUES(c_name, wit_name, Type)                                                        \
    EXPORT(METHOD "get-" wit_name)                                                            \
    list_result *PREFIX(get_##c_name)(holder *self, const uint32_t *of, size_t count)         \
    {                                                                                         \
        fmi3##Type *const values = take_list(count, sizeof *values);                          \
        return list_or_status(fmi3Get##Type(self->unit, of, count, values, count), values, count); \
    }                                                                                         \
    AFTER(get_##c_name, "get-" wit_name)                                                      \
    EXPORT(METHOD "set-" wit_name)                                                            \
    uint32_t PREFIX(set_##c_name)(holder *self, const uint32_t *of, size_t count,             \
                                  const fmi3##Type *values, size_t value_count)               \
    {                                                                                         \
        return ended(fmi3Set##Type(self->unit, of, count, values, value_count));              \
    }

/* A method of references that gives a list, by a function of component_methods.h. */
#define LISTED(c_name, wit_name, function)                                                    \
    EXPORT(METHOD wit_name) list_result *PREFIX(c_name)(holder *self, const uint32_t *of, size_t count) \
    {                                                                                         \
        return function(self->unit, (references){of, count});                                 \
    }                                                                                         \
    AFTER(c_name, wit_name)

/* clang-format off */
PLAIN(exit_initialization_mode, "exit-initialization-mode", fmi3ExitInitializationMode)
PLAIN(enter_event_mode, "enter-event-mode", fmi3EnterEventMode)
PLAIN(terminate, "terminate", fmi3Terminate)
PLAIN(reset, "reset", fmi3Reset)
PLAIN(enter_configuration_mode, "enter-configuration-mode", fmi3EnterConfigurationMode)
PLAIN(exit_configuration_mode, "exit-configuration-mode", fmi3ExitConfigurationMode)
PLAIN(evaluate_discrete_states, "evaluate-discrete-states", fmi3EvaluateDiscreteStates)
PLAIN(enter_step_mode, "enter-step-mode", fmi3EnterStepMode)

VALUES(float32, "float32", Float32)
VALUES(float64, "float64", Float64)
VALUES(int8, "int8", Int8)
VALUES(int16, "int16", Int16)
VALUES(int32, "int32", Int32)
VALUES(int64, "int64", Int64)
VALUES(uint8, "uint8", UInt8)
VALUES(uint16, "uint16", UInt16)
VALUES(uint32, "uint32", UInt32)
VALUES(uint64, "uint64", UInt64)
VALUES(boolean, "boolean", Boolean)

LISTED(get_text, "get-string", wit_get_text)
LISTED(get_binary, "get-binary", wit_get_binary)
LISTED(get_interval_decimal, "get-interval-decimal", wit_interval_decimal)
LISTED(get_interval_fraction, "get-interval-fraction", wit_interval_fraction)
LISTED(get_shift_decimal, "get-shift-decimal", wit_shift_decimal)
LISTED(get_shift_fraction, "get-shift-fraction", wit_shift_fraction)
/* clang-format on */

EXPORT(METHOD "set-string")
uint32_t PREFIX(set_text)(holder *self, const uint32_t *of, size_t count, const text *values, size_t value_count)
{
    return ended(wit_set_text(self->unit, (references){of, count}, values, value_count));
}

EXPORT(METHOD "set-binary")
uint32_t PREFIX(set_binary)(holder *self, const uint32_t *of, size_t count, const bytes *values, size_t value_count)
{
    return ended(wit_set_binary(self->unit, (references){of, count}, values, value_count));
}

EXPORT(METHOD "get-clock") list_result *PREFIX(get_clock)(holder *self, const uint32_t *of, size_t count)
{
    fmi3Clock *const values = take_list(count, sizeof *values);
    return list_or_status(fmi3GetClock(self->unit, of, count, values), values, count);
}

AFTER(get_clock, "get-clock")

/* FMI's functions of clocks have no count of values: two lists of different lengths are refused here. */
EXPORT(METHOD "set-clock")
uint32_t PREFIX(set_clock)(holder *self, const uint32_t *of, size_t count, const fmi3Clock *values, size_t value_count)
{
    return ended(count == value_count ? fmi3SetClock(self->unit, of, count, values) : fmi3Error);
}

EXPORT(METHOD "set-interval-decimal")
uint32_t PREFIX(set_interval_decimal)(holder *self, const uint32_t *of, size_t count, const double *values,
                                      size_t value_count)
{
    return ended(count == value_count ? fmi3SetIntervalDecimal(self->unit, of, count, values) : fmi3Error);
}

EXPORT(METHOD "set-shift-decimal")
uint32_t PREFIX(set_shift_decimal)(holder *self, const uint32_t *of, size_t count, const double *values,
                                   size_t value_count)
{
    return ended(count == value_count ? fmi3SetShiftDecimal(self->unit, of, count, values) : fmi3Error);
}

EXPORT(METHOD "set-interval-fraction")
uint32_t PREFIX(set_interval_fraction)(holder *self, const uint32_t *of, size_t count, const fraction *values,
                                       size_t value_count)
{
    const references these = {of, count};
    return ended(wit_set_fractions(fmi3SetIntervalFraction, self->unit, these, values, value_count));
}

EXPORT(METHOD "set-shift-fraction")
uint32_t PREFIX(set_shift_fraction)(holder *self, const uint32_t *of, size_t count, const fraction *values,
                                    size_t value_count)
{
    const references these = {of, count};
    return ended(wit_set_fractions(fmi3SetShiftFraction, self->unit, these, values, value_count));
}

EXPORT(METHOD "set-debug-logging")
uint32_t PREFIX(set_debug_logging)(holder *self, uint32_t on, const text *names, size_t count)
{
    return ended(wit_log(self->unit, on, names, count));
}

EXPORT(METHOD "enter-initialization-mode")
uint32_t PREFIX(enter_initialization_mode)(holder *self, uint32_t tolerance_given, double tolerance, double start,
                                           uint32_t stop_given, double stop)
{
    return ended(
        fmi3EnterInitializationMode(self->unit, tolerance_given != 0, tolerance, start, stop_given != 0, stop));
}

EXPORT(METHOD "update-discrete-states") record_result *PREFIX(update_discrete_states)(holder *self)
{
    return wit_update_discrete_states(self->unit);
}

AFTER(update_discrete_states, "update-discrete-states")

EXPORT(METHOD "get-number-of-variable-dependencies")
number_result *PREFIX(count_dependencies)(holder *self, uint32_t reference)
{
    return wit_count_dependencies(self->unit, reference);
}

AFTER(count_dependencies, "get-number-of-variable-dependencies")

EXPORT(METHOD "get-variable-dependencies") list_result *PREFIX(dependencies)(holder *self, uint32_t reference)
{
    return wit_dependencies(self->unit, reference);
}

AFTER(dependencies, "get-variable-dependencies")

EXPORT(METHOD "get-fmu-state") list_result *PREFIX(get_state)(holder *self)
{
    return wit_get_state(self->unit);
}

AFTER(get_state, "get-fmu-state")

EXPORT(METHOD "set-fmu-state") uint32_t PREFIX(set_state)(holder *self, const uint8_t *content, size_t size)
{
    return ended(wit_set_state(self->unit, content, size));
}

EXPORT(METHOD "get-directional-derivative")
list_result *PREFIX(directional)(holder *self, const uint32_t *unknowns, size_t unknown_count, const uint32_t *knowns,
                                 size_t known_count, const double *seed, size_t seed_count)
{
    const references of = {unknowns, unknown_count}, by = {knowns, known_count};
    return wit_derivative(fmi3GetDirectionalDerivative, self->unit, of, by, seed, seed_count, unknown_count);
}

AFTER(directional, "get-directional-derivative")

EXPORT(METHOD "get-adjoint-derivative")
list_result *PREFIX(adjoint)(holder *self, const uint32_t *unknowns, size_t unknown_count, const uint32_t *knowns,
                             size_t known_count, const double *seed, size_t seed_count)
{
    const references of = {unknowns, unknown_count}, by = {knowns, known_count};
    return wit_derivative(fmi3GetAdjointDerivative, self->unit, of, by, seed, seed_count, known_count);
}

AFTER(adjoint, "get-adjoint-derivative")

EXPORT(METHOD "get-output-derivatives")
list_result *PREFIX(output_derivatives)(holder *self, const request *requests, size_t count)
{
    return wit_output_derivatives(self->unit, requests, count);
}

AFTER(output_derivatives, "get-output-derivatives")

#undef AFTER
#undef PLAIN
#undef VALUES
#undef LISTED
