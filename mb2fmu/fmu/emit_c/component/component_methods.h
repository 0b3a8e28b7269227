/* component_methods.h: what both resources of a component do; component_exports.h gives it to each under its name. */

static void split_requests(const request *requests, size_t count, uint32_t *of, int32_t *orders)
{
    size_t i;
    for (i = 0; i < count; ++i) {
        of[i] = requests[i].reference;
        orders[i] = requests[i].order > INT32_MAX ? INT32_MAX : (int32_t)requests[i].order;
    }
}

/* The draft's kinds are FMI's but for the first: it has no word for "independent", which is no dependency. */
static uint8_t wit_kind(fmi3DependencyKind kind)
{
    return kind == fmi3Dependent ? 0 : (uint8_t)kind;
}

typedef struct {
    const uint32_t *data;
    size_t count;
} references;

static list_result *wit_get_text(fmi3Instance unit, references of)
{
    fmi3String *const values = take_list(of.count, sizeof *values);
    text *const list = take_list(of.count, sizeof *list);
    const fmi3Status status = fmi3GetString(unit, of.data, of.count, values, of.count);
    size_t i;
    for (i = 0; !is_failure(status) && i < of.count; ++i) {
        list[i].data = values[i];
        list[i].size = strlen(values[i]);
    }
    return list_or_status(status, list, of.count);
}

static fmi3Status wit_set_text(fmi3Instance unit, references of, const text *given, size_t count)
{
    fmi3String *const values = take_list(count, sizeof *values);
    size_t i;
    for (i = 0; i < count; ++i) {
        values[i] = terminated(given[i]);
    }
    return fmi3SetString(unit, of.data, of.count, values, count);
}

static list_result *wit_get_binary(fmi3Instance unit, references of)
{
    size_t *const sizes = take_list(of.count, sizeof *sizes);
    fmi3Binary *const values = take_list(of.count, sizeof *values);
    bytes *const list = take_list(of.count, sizeof *list);
    const fmi3Status status = fmi3GetBinary(unit, of.data, of.count, sizes, values, of.count);
    size_t i;
    for (i = 0; !is_failure(status) && i < of.count; ++i) {
        list[i].data = values[i];
        list[i].size = sizes[i];
    }
    return list_or_status(status, list, of.count);
}

static fmi3Status wit_set_binary(fmi3Instance unit, references of, const bytes *given, size_t count)
{
    size_t *const sizes = take_list(count, sizeof *sizes);
    fmi3Binary *const values = take_list(count, sizeof *values);
    size_t i;
    for (i = 0; i < count; ++i) {
        sizes[i] = given[i].size;
        values[i] = given[i].data;
    }
    return fmi3SetBinary(unit, of.data, of.count, sizes, values, count);
}

static fmi3Status wit_log(fmi3Instance unit, uint32_t on, const text *given, size_t count)
{
    fmi3String *const names = take_list(count, sizeof *names);
    size_t i;
    for (i = 0; i < count; ++i) {
        names[i] = terminated(given[i]);
    }
    return fmi3SetDebugLogging(unit, on != 0, count, names);
}

static record_result *wit_update_discrete_states(fmi3Instance unit)
{
    record_result *const result = take(sizeof *result);
    fmi3Boolean needed = false, terminate = false, nominals = false, values = false, next_defined = false;
    fmi3Float64 next = 0.0;
    const fmi3Status status =
        fmi3UpdateDiscreteStates(unit, &needed, &terminate, &nominals, &values, &next_defined, &next);
    result->failed = is_failure(status);
    if (result->failed) {
        result->as.status = (uint8_t)status;
    } else {
        result->as.discrete.needed = needed;
        result->as.discrete.terminate = terminate;
        result->as.discrete.nominals = nominals;
        result->as.discrete.values = values;
        result->as.discrete.next_defined = next_defined;
        result->as.discrete.next = next;
    }
    return result;
}

static number_result *wit_count_dependencies(fmi3Instance unit, uint32_t reference)
{
    size_t count = 0;
    const fmi3Status status = fmi3GetNumberOfVariableDependencies(unit, reference, &count);
    return number_or_status(status, count);
}

static list_result *wit_dependencies(fmi3Instance unit, uint32_t reference)
{
    size_t count = 0, kept = 0, i;
    dependency *list = NULL;
    fmi3Status status = fmi3GetNumberOfVariableDependencies(unit, reference, &count);
    if (!is_failure(status)) {
        size_t *const elements = take_list(count, sizeof *elements);
        uint32_t *const independents = take_list(count, sizeof *independents);
        size_t *const independent_elements = take_list(count, sizeof *independent_elements);
        fmi3DependencyKind *const kinds = take_list(count, sizeof *kinds);
        list = take_list(count, sizeof *list);
        status = fmi3GetVariableDependencies(unit, reference, elements, independents, independent_elements, kinds,
                                             count);
        for (i = 0; !is_failure(status) && i < count; ++i) {
            if (kinds[i] != fmi3Independent) {
                list[kept].dependent = reference;
                list[kept].dependent_element = (uint32_t)elements[i];
                list[kept].independent = independents[i];
                list[kept].independent_element = (uint32_t)independent_elements[i];
                list[kept++].kind = wit_kind(kinds[i]);
            }
        }
    }
    return list_or_status(status, list, kept);
}

/* The draft keeps a state as bytes only. */
static list_result *wit_get_state(fmi3Instance unit)
{
    fmi3FMUState state = NULL;
    size_t size = 0;
    fmi3Byte *content = NULL;
    fmi3Status status = fmi3GetFMUState(unit, &state);
    if (!is_failure(status)) {
        status = fmi3SerializedFMUStateSize(unit, state, &size);
    }
    if (!is_failure(status)) {
        content = take(size);
        status = fmi3SerializeFMUState(unit, state, content, size);
    }
    if (state != NULL) {
        (void)fmi3FreeFMUState(unit, &state);
    }
    return list_or_status(status, content, size);
}

static fmi3Status wit_set_state(fmi3Instance unit, const fmi3Byte *content, size_t size)
{
    fmi3FMUState state = NULL;
    fmi3Status status = fmi3DeserializeFMUState(unit, content, size, &state);
    if (!is_failure(status)) {
        status = fmi3SetFMUState(unit, state);
    }
    if (state != NULL) {
        (void)fmi3FreeFMUState(unit, &state);
    }
    return status;
}

typedef fmi3Status (*derivative_function)(fmi3Instance, const fmi3ValueReference[], size_t, const fmi3ValueReference[],
                                          size_t, const fmi3Float64[], size_t, fmi3Float64[], size_t);

/* Directional: as many results as unknowns; adjoint: as many as knowns. */
static list_result *wit_derivative(derivative_function function, fmi3Instance unit, references unknowns,
                                   references knowns, const double *seed, size_t seed_count, size_t count)
{
    double *const values = take_list(count, sizeof *values);
    const fmi3Status status = function(unit, unknowns.data, unknowns.count, knowns.data, knowns.count, seed, seed_count,
                                       values, count);
    return list_or_status(status, values, count);
}

static list_result *wit_output_derivatives(fmi3Instance unit, const request *requests, size_t count)
{
    uint32_t *const of = take_list(count, sizeof *of);
    int32_t *const orders = take_list(count, sizeof *orders);
    double *const values = take_list(count, sizeof *values);
    split_requests(requests, count, of, orders);
    return list_or_status(fmi3GetOutputDerivatives(unit, of, count, orders, values, count), values, count);
}

static list_result *wit_interval_decimal(fmi3Instance unit, references of)
{
    double *const intervals = take_list(of.count, sizeof *intervals);
    fmi3IntervalQualifier *const qualifiers = take_list(of.count, sizeof *qualifiers);
    decimal_interval *const list = take_list(of.count, sizeof *list);
    const fmi3Status status = fmi3GetIntervalDecimal(unit, of.data, of.count, intervals, qualifiers);
    size_t i;
    for (i = 0; !is_failure(status) && i < of.count; ++i) {
        list[i].interval = intervals[i];
        list[i].qualifier = (uint8_t)qualifiers[i];
    }
    return list_or_status(status, list, of.count);
}

static list_result *wit_interval_fraction(fmi3Instance unit, references of)
{
    uint64_t *const counters = take_list(of.count, sizeof *counters);
    uint64_t *const resolutions = take_list(of.count, sizeof *resolutions);
    fmi3IntervalQualifier *const qualifiers = take_list(of.count, sizeof *qualifiers);
    fraction_interval *const list = take_list(of.count, sizeof *list);
    const fmi3Status status = fmi3GetIntervalFraction(unit, of.data, of.count, counters, resolutions, qualifiers);
    size_t i;
    for (i = 0; !is_failure(status) && i < of.count; ++i) {
        list[i].interval.counter = counters[i];
        list[i].interval.resolution = resolutions[i];
        list[i].qualifier = (uint8_t)qualifiers[i];
    }
    return list_or_status(status, list, of.count);
}

static list_result *wit_shift_decimal(fmi3Instance unit, references of)
{
    double *const shifts = take_list(of.count, sizeof *shifts);
    return list_or_status(fmi3GetShiftDecimal(unit, of.data, of.count, shifts), shifts, of.count);
}

static list_result *wit_shift_fraction(fmi3Instance unit, references of)
{
    uint64_t *const counters = take_list(of.count, sizeof *counters);
    uint64_t *const resolutions = take_list(of.count, sizeof *resolutions);
    fraction *const list = take_list(of.count, sizeof *list);
    const fmi3Status status = fmi3GetShiftFraction(unit, of.data, of.count, counters, resolutions);
    size_t i;
    for (i = 0; !is_failure(status) && i < of.count; ++i) {
        list[i].counter = counters[i];
        list[i].resolution = resolutions[i];
    }
    return list_or_status(status, list, of.count);
}

typedef fmi3Status (*fraction_function)(fmi3Instance, const fmi3ValueReference[], size_t, const fmi3UInt64[],
                                        const fmi3UInt64[]);

/* FMI's functions have no count of values: two lists of different lengths are refused here. */
static fmi3Status wit_set_fractions(fraction_function function, fmi3Instance unit, references of,
                                    const fraction *given, size_t count)
{
    uint64_t *const counters = take_list(count, sizeof *counters);
    uint64_t *const resolutions = take_list(count, sizeof *resolutions);
    size_t i;
    for (i = 0; i < count; ++i) {
        counters[i] = given[i].counter;
        resolutions[i] = given[i].resolution;
    }
    return of.count == count ? function(unit, of.data, of.count, counters, resolutions) : fmi3Error;
}
