/* handles.c: what importers hold of an instance.
 *
 * Why it exists: an importer may call with a null pointer, with a pointer to something else, or with the pointer of an
 * instance it has freed, even free it twice. None of this may crash, and memory that was given back may not be read to
 * find out. So an importer never holds the instance's address but that of a slot in a table; a slot that is empty has
 * no instance any more.
 *
 * The table is the only thing that instances share. It holds addresses, nothing that a result depends on, and is
 * changed by atomic operations: instances in several threads do not wait for each other. Slots are taken in turn, so
 * that the pointer of a freed instance is not reused before 16,384 others were made.
 */
#include "instance.h"

#define MB2FMU_SLOTS 16384u

#if defined(__GNUC__)
#define MB2FMU_ATOMIC_LOAD(place) __atomic_load_n((place), __ATOMIC_ACQUIRE)
#define MB2FMU_ATOMIC_EXCHANGE(place, value) __atomic_exchange_n((place), (value), __ATOMIC_ACQ_REL)
#define MB2FMU_ATOMIC_NEXT(place) __atomic_fetch_add((place), 1u, __ATOMIC_RELAXED)
#define MB2FMU_ATOMIC_CLAIM(place, empty, value) \
    __atomic_compare_exchange_n((place), &(empty), (value), 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)
#elif defined(_MSC_VER)
#include <intrin.h>
#define MB2FMU_ATOMIC_LOAD(place) (*(mb2fmu_instance * volatile *)(place))
#define MB2FMU_ATOMIC_EXCHANGE(place, value) \
    ((mb2fmu_instance *)_InterlockedExchangePointer((void *volatile *)(place), (value)))
#define MB2FMU_ATOMIC_NEXT(place) ((unsigned)_InterlockedExchangeAdd((long volatile *)(place), 1))
#define MB2FMU_ATOMIC_CLAIM(place, empty, value) \
    (_InterlockedCompareExchangePointer((void *volatile *)(place), (value), (empty)) == NULL)
#else
#error "a compiler with atomic operations is needed: GCC, Clang or MSVC"
#endif

static mb2fmu_instance *mb2fmu_slots[MB2FMU_SLOTS];
static unsigned mb2fmu_next_slot;

/* NULL where all slots are taken. */
static void *mb2fmu_handle_take(mb2fmu_instance *instance)
{
    unsigned attempt;
    for (attempt = 0; attempt < MB2FMU_SLOTS; ++attempt) {
        const unsigned slot = MB2FMU_ATOMIC_NEXT(&mb2fmu_next_slot) % MB2FMU_SLOTS;
        mb2fmu_instance *empty = NULL;
        if (MB2FMU_ATOMIC_CLAIM(&mb2fmu_slots[slot], empty, instance)) {
            return &mb2fmu_slots[slot];
        }
    }
    return NULL;
}

/* The slot, or NULL if that is no pointer of ours. */
static mb2fmu_instance **mb2fmu_handle_slot(void *handle)
{
    const uintptr_t offset = (uintptr_t)handle - (uintptr_t)mb2fmu_slots;
    if (offset >= sizeof mb2fmu_slots || offset % sizeof mb2fmu_slots[0] != 0) {
        return NULL;
    }
    return &mb2fmu_slots[offset / sizeof mb2fmu_slots[0]];
}

static mb2fmu_instance *mb2fmu_handle_find(void *handle)
{
    mb2fmu_instance **const slot = mb2fmu_handle_slot(handle);
    return slot == NULL ? NULL : MB2FMU_ATOMIC_LOAD(slot);
}

/* The instance that the caller must free now: only one caller ever gets it. */
static mb2fmu_instance *mb2fmu_handle_release(void *handle)
{
    mb2fmu_instance **const slot = mb2fmu_handle_slot(handle);
    return slot == NULL ? NULL : MB2FMU_ATOMIC_EXCHANGE(slot, NULL);
}
