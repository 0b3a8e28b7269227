/* state.c: the state of an FMU, copied, put back, and as bytes.
 *
 * The bytes (see state_bytes.h; all integers 64 bits):
 *   "MB2FMUST", format, length of the token, token, kind, number of states, inputs, parameters, and of the integrator's
 *   reals and integers,
 *   mode, solver, stop defined, experiment defined, last status, time, its rest, steps, start, stop, tolerance,
 *   internal step,
 *   x, r, r', whether r was given for just this time, p, what is remembered, with events r as the last step left it and
 *   whether that counts, the integrator's reals and integers, and the checksum of all that (FNV-1a, 64 bits).
 * They do not depend on the FMI version or the platform. Bytes that are not ours, of another unit, kind or format, or
 * damaged, are refused, and nothing changes.
 */
#include "instance.h"

#define MB2FMU_STATE_FORMAT 3
#define MB2FMU_STATE_MARK 0x4D42325354415445ULL /* a live state object */

typedef struct {
    unsigned long long mark;
    enum mb2fmu_kind kind;
    mb2fmu_snapshot now;
    mb2fmu_integrator_memory memory; /* the integrator's */
} mb2fmu_state;

/* The object behind an importer's pointer, or NULL and a message. */
static mb2fmu_state *mb2fmu_state_of(mb2fmu_instance *instance, void *state)
{
    if (state == NULL || ((mb2fmu_state *)state)->mark != MB2FMU_STATE_MARK) {
        (void)mb2fmu_fail(instance, MB2FMU_ERROR, "this is no state of a unit");
        return NULL;
    }
    return (mb2fmu_state *)state;
}

/* An object given before is used again (FMI 2.0.5 section 2.1.8, FMI 3.0.2 section 2.2.6.4). */
static mb2fmu_state *mb2fmu_state_room(mb2fmu_instance *instance, void **place)
{
    mb2fmu_state *state;
    if (mb2fmu_missing(instance, place, 1, "state")) {
        return NULL;
    }
    if (*place != NULL) {
        return mb2fmu_state_of(instance, *place);
    }
    state = (mb2fmu_state *)MB2FMU_CALLOC(1, sizeof *state);
    if (state == NULL) {
        (void)mb2fmu_fail(instance, MB2FMU_ERROR, "there is no memory for a state");
        return NULL;
    }
    state->mark = MB2FMU_STATE_MARK;
    return state;
}

static enum mb2fmu_status mb2fmu_get_state(mb2fmu_instance *instance, void **place)
{
    mb2fmu_state *const state = mb2fmu_state_room(instance, place);
    if (state == NULL) {
        return MB2FMU_ERROR;
    }
    state->kind = instance->kind;
    memcpy(&state->now, &instance->now, sizeof state->now);
    memcpy(&state->memory, &instance->integrator.memory, sizeof state->memory);
    *place = state;
    return MB2FMU_OK;
}

static enum mb2fmu_status mb2fmu_set_state(mb2fmu_instance *instance, void *pointer)
{
    const mb2fmu_state *const state = mb2fmu_state_of(instance, pointer);
    if (state == NULL) {
        return MB2FMU_ERROR;
    }
    if (state->kind != instance->kind) {
        return mb2fmu_fail(instance, MB2FMU_ERROR, "this is a state of %s",
                           state->kind == MB2FMU_CO_SIMULATION ? "Co-Simulation" : "Model Exchange");
    }
    if (memcmp(instance->now.p, state->now.p, sizeof state->now.p) != 0) {
        instance->levels = 0;
    }
    instance->levels &= (unsigned)MB2FMU_LEVEL_PREPARED;
    mb2fmu_integrator_invalidate(&instance->integrator); /* what was computed on the way to another state */
    memcpy(&instance->now, &state->now, sizeof instance->now);
    mb2fmu_recall(instance);
    memcpy(&instance->integrator.memory, &state->memory, sizeof state->memory);
    if (MB2FMU_FMI == 3 && instance->now.mode == MB2FMU_STEP_FAILED) {
        instance->now.mode = MB2FMU_STEP;
    }
    return MB2FMU_OK;
}

static enum mb2fmu_status mb2fmu_free_state(mb2fmu_instance *instance, void **place)
{
    mb2fmu_state *state;
    if (place == NULL || *place == NULL) {
        return MB2FMU_OK;
    }
    state = mb2fmu_state_of(instance, *place);
    if (state == NULL) {
        return MB2FMU_ERROR;
    }
    state->mark = 0;
    MB2FMU_FREE(state);
    *place = NULL;
    return MB2FMU_OK;
}

/* --- bytes -------------------------------------------------------------------------------------------------------- */

/* Writes the head; reading, hands back what does not agree, else NULL. */
static const char *mb2fmu_stream_head(mb2fmu_stream *stream, enum mb2fmu_kind kind)
{
    static const char mark[8] = {'M', 'B', '2', 'F', 'M', 'U', 'S', 'T'};
    const char *const token = MB2FMU_TOKEN;
    const int expected[] = {(int)kind,         MB2FMU_N_STATES,     MB2FMU_N_INPUTS,
                            MB2FMU_N_PARAMETERS, MB2FMU_INTEGRATOR_REALS, MB2FMU_INTEGRATOR_INTEGERS};
    unsigned char bytes[sizeof mark];
    int format = MB2FMU_STATE_FORMAT;
    int length = (int)strlen(token);
    size_t i;
    memcpy(bytes, mark, sizeof mark);
    mb2fmu_stream_bytes(stream, bytes, sizeof mark);
    if (memcmp(bytes, mark, sizeof mark) != 0) {
        return "no state of a unit";
    }
    mb2fmu_stream_int(stream, &format);
    if (format != MB2FMU_STATE_FORMAT) {
        return "a state in another format";
    }
    mb2fmu_stream_int(stream, &length);
    if (length != (int)strlen(token)) {
        return "the state of another unit";
    }
    for (i = 0; token[i] != '\0'; ++i) {
        unsigned char byte = (unsigned char)token[i];
        mb2fmu_stream_bytes(stream, &byte, 1);
        if (byte != (unsigned char)token[i]) {
            return "the state of another unit";
        }
    }
    for (i = 0; i < sizeof expected / sizeof expected[0]; ++i) {
        int found = expected[i];
        mb2fmu_stream_int(stream, &found);
        if (found != expected[i]) {
            return i == 0 ? "a state of the other kind (Model Exchange or Co-Simulation)" : "the state of another unit";
        }
    }
    return NULL;
}

static void mb2fmu_stream_snapshot(mb2fmu_stream *stream, mb2fmu_snapshot *now)
{
    long long steps = (long long)now->clock.steps;
    int i;
    mb2fmu_stream_int(stream, &now->mode);
    mb2fmu_stream_int(stream, &now->solver);
    mb2fmu_stream_int(stream, &now->stop_defined);
    mb2fmu_stream_int(stream, &now->experiment_defined);
    mb2fmu_stream_int(stream, &now->last_status);
    mb2fmu_stream_real(stream, &now->clock.time);
    mb2fmu_stream_real(stream, &now->clock.rest);
    mb2fmu_stream_integer(stream, &steps);
    mb2fmu_stream_real(stream, &now->start);
    mb2fmu_stream_real(stream, &now->stop);
    mb2fmu_stream_real(stream, &now->tolerance);
    mb2fmu_stream_real(stream, &now->solver_step);
    mb2fmu_stream_reals(stream, now->x, MB2FMU_N_STATES);
#if MB2FMU_N_INITIALIZED > 0
    mb2fmu_stream_reals(stream, now->declared, MB2FMU_N_STATES);
#endif
    mb2fmu_stream_reals(stream, now->r, MB2FMU_N_INPUTS);
    mb2fmu_stream_reals(stream, now->slope, MB2FMU_N_INPUTS);
    for (i = 0; i < MB2FMU_N_INPUTS; ++i) {
        mb2fmu_stream_int(stream, &now->given[i]);
    }
    mb2fmu_stream_reals(stream, now->p, MB2FMU_N_PARAMETERS);
#if MB2FMU_N_MEMORY > 0
    mb2fmu_stream_reals(stream, now->memory, MB2FMU_N_MEMORY);
#endif
#if MB2FMU_N_MODES > 0
    mb2fmu_stream_int(stream, &now->settled);
    mb2fmu_stream_reals(stream, now->settled_r, MB2FMU_N_INPUTS);
#endif
    now->clock.steps = (int64_t)steps;
}

static void mb2fmu_stream_memory(mb2fmu_stream *stream, double reals[], int64_t integers[])
{
    int i;
    mb2fmu_stream_reals(stream, reals, MB2FMU_INTEGRATOR_REALS);
    for (i = 0; i < MB2FMU_INTEGRATOR_INTEGERS; ++i) {
        long long value = (long long)integers[i];
        mb2fmu_stream_integer(stream, &value);
        integers[i] = (int64_t)value;
    }
}

/* FNV-1a: no change of a single byte keeps it. */
static unsigned long long mb2fmu_checksum(const unsigned char bytes[], size_t n)
{
    unsigned long long sum = 0xCBF29CE484222325ULL;
    size_t i;
    for (i = 0; i < n; ++i) {
        sum = (sum ^ bytes[i]) * 0x100000001B3ULL;
    }
    return sum;
}

/* Bytes of a whole state: always the same number. */
static size_t mb2fmu_bytes_needed(mb2fmu_instance *instance)
{
    mb2fmu_stream stream = {MB2FMU_COUNTING, NULL, NULL, 0, 0};
    int64_t integers[MB2FMU_INTEGRATOR_INTEGERS] = {0};
    (void)mb2fmu_stream_head(&stream, instance->kind);
    mb2fmu_stream_snapshot(&stream, &instance->now);
    mb2fmu_stream_memory(&stream, instance->reals, integers);
    return stream.at + 8;
}

static enum mb2fmu_status mb2fmu_state_size(mb2fmu_instance *instance, void *state, size_t *size)
{
    if (mb2fmu_state_of(instance, state) == NULL || mb2fmu_missing(instance, size, 1, "size")) {
        return MB2FMU_ERROR;
    }
    *size = mb2fmu_bytes_needed(instance);
    return MB2FMU_OK;
}

/* Exchanges the integrator's memory with that of a state. */
static void mb2fmu_swap_memory(mb2fmu_instance *instance, mb2fmu_state *state)
{
    const mb2fmu_integrator_memory memory = instance->integrator.memory;
    instance->integrator.memory = state->memory;
    state->memory = memory;
}

static enum mb2fmu_status mb2fmu_serialize(mb2fmu_instance *instance, void *pointer, unsigned char bytes[],
                                           size_t size)
{
    mb2fmu_state *const state = mb2fmu_state_of(instance, pointer);
    const size_t needed = mb2fmu_bytes_needed(instance);
    mb2fmu_stream stream = {MB2FMU_WRITING, bytes, NULL, size, 0};
    int64_t integers[MB2FMU_INTEGRATOR_INTEGERS];
    long long checksum;
    if (state == NULL || mb2fmu_missing(instance, bytes, 1, "serialized state")) {
        return MB2FMU_ERROR;
    }
    if (size < needed) {
        return mb2fmu_fail(instance, MB2FMU_ERROR, "a state needs %zu bytes, not %zu", needed, size);
    }
    mb2fmu_swap_memory(instance, state);
    mb2fmu_integrator_save(&instance->integrator, instance->reals, integers);
    mb2fmu_swap_memory(instance, state);
    (void)mb2fmu_stream_head(&stream, state->kind);
    mb2fmu_stream_snapshot(&stream, &state->now);
    mb2fmu_stream_memory(&stream, instance->reals, integers);
    checksum = (long long)mb2fmu_checksum(bytes, needed - 8);
    mb2fmu_stream_integer(&stream, &checksum);
    return MB2FMU_OK;
}

/* Bytes can be whole and yet say what no unit can have said. Event Mode of Co-Simulation is for instances whose
 * importer handles events: in another one its calls are not allowed, so nothing would lead out of it. */
static int mb2fmu_possible(const mb2fmu_snapshot *now, const mb2fmu_instance *instance)
{
    const int common = MB2FMU_INSTANTIATED | MB2FMU_INITIALIZATION | MB2FMU_TERMINATED | MB2FMU_FAILED;
    const int modes = common | (instance->kind == MB2FMU_MODEL_EXCHANGE
                                    ? MB2FMU_EVENT | MB2FMU_CONTINUOUS
                                    : MB2FMU_STEP | MB2FMU_STEP_FAILED | (instance->event_mode ? MB2FMU_EVENT : 0));
    int finite = isfinite(now->clock.time) && isfinite(now->clock.rest) && isfinite(now->start) &&
                 isfinite(now->stop) && isfinite(now->tolerance) && now->tolerance > 0.0 &&
                 isfinite(now->solver_step) && now->solver_step >= 0.0 && mb2fmu_clock_possible(&now->clock) &&
                 (now->stop_defined | 1) == 1 && (now->experiment_defined | 1) == 1 &&
                 (!now->stop_defined || now->stop >= now->start);
    int i;
    for (i = 0; i < MB2FMU_N_STATES; ++i) {
        finite = finite && isfinite(now->x[i]);
#if MB2FMU_N_INITIALIZED > 0
        finite = finite && isfinite(now->declared[i]);
#endif
    }
    for (i = 0; i < MB2FMU_N_INPUTS; ++i) {
        finite = finite && isfinite(now->r[i]) && isfinite(now->slope[i]) && (now->given[i] | 1) == 1;
    }
    for (i = 0; i < MB2FMU_N_PARAMETERS; ++i) {
        finite = finite && isfinite(now->p[i]);
    }
#if MB2FMU_N_MEMORY > 0
    for (i = 0; i < MB2FMU_N_MEMORY; ++i) {
        finite = finite && isfinite(now->memory[i]);
    }
#endif
#if MB2FMU_N_MODES > 0
    finite = finite && (now->settled | 1) == 1;
    for (i = 0; i < MB2FMU_N_INPUTS; ++i) {
        finite = finite && isfinite(now->settled_r[i]);
    }
#endif
    return finite && now->mode > 0 && (now->mode & (now->mode - 1)) == 0 && (now->mode & ~modes) == 0 &&
           mb2fmu_solver_known(now->solver) && now->last_status >= MB2FMU_OK &&
           now->last_status <= MB2FMU_ERROR;
}

/* Reads into a state, which changes only if all is well; NULL, or what is wrong with the bytes. */
static const char *mb2fmu_read_state(mb2fmu_instance *instance, const unsigned char bytes[], size_t size,
                                     mb2fmu_state *state)
{
    mb2fmu_stream stream = {MB2FMU_READING, NULL, bytes, size, 0};
    mb2fmu_stream end = {MB2FMU_READING, NULL, bytes, size, size - 8};
    mb2fmu_snapshot *const read = &instance->before;
    const mb2fmu_integrator_memory memory = instance->integrator.memory;
    int64_t integers[MB2FMU_INTEGRATOR_INTEGERS] = {0};
    const char *const fault = size >= 8 ? mb2fmu_stream_head(&stream, instance->kind) : "no state of a unit";
    long long checksum = 0;
    if (fault != NULL) {
        return fault;
    }
    if (size != mb2fmu_bytes_needed(instance)) {
        return "a state that was cut off or has grown";
    }
    mb2fmu_stream_integer(&end, &checksum);
    if ((unsigned long long)checksum != mb2fmu_checksum(bytes, size - 8)) {
        return "a damaged state: the checksum is wrong";
    }
    memset(read, 0, sizeof *read);
    mb2fmu_stream_snapshot(&stream, read);
    mb2fmu_stream_memory(&stream, instance->reals, integers);
    if (!mb2fmu_possible(read, instance) ||
        mb2fmu_integrator_load(&instance->integrator, instance->reals, integers) != 0) {
        return "a state that no unit can have been in";
    }
    if ((read->mode & (MB2FMU_STEP | MB2FMU_STEP_FAILED)) != 0 && read->solver != integers[0]) {
        instance->integrator.memory = memory; /* the one that was chosen is the one that integrates */
        return "a state that no unit can have been in";
    }
    state->kind = instance->kind;
    memcpy(&state->now, read, sizeof state->now);
    state->memory = instance->integrator.memory;
    instance->integrator.memory = memory;
    return NULL;
}

static enum mb2fmu_status mb2fmu_deserialize(mb2fmu_instance *instance, const unsigned char bytes[], size_t size,
                                             void **place)
{
    const int fresh = place != NULL && *place == NULL;
    mb2fmu_state *state;
    const char *fault;
    if (mb2fmu_missing(instance, bytes, 1, "serialized state")) {
        return MB2FMU_ERROR;
    }
    state = mb2fmu_state_room(instance, place);
    if (state == NULL) {
        return MB2FMU_ERROR;
    }
    fault = mb2fmu_read_state(instance, bytes, size, state);
    if (fault != NULL) {
        if (fresh) {
            MB2FMU_FREE(state);
        }
        return mb2fmu_fail(instance, MB2FMU_ERROR, "these %zu bytes are %s", size, fault);
    }
    *place = state;
    return MB2FMU_OK;
}
