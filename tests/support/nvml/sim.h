/* What the parts of the simulated library share: the mapped state, resolving handles, the frame of a call.
 *
 * Every call has the same frame: BEGIN takes the lock, looks for an injected fault, resolves the handle and
 * refuses a lost card; END gives the lock back. Between them the code sees a quiet state.
 */
#ifndef SIM_H
#define SIM_H

#define NVML_NO_UNVERSIONED_FUNC_DEFS 1
#include <nvml.h>

#include "state.h"

#define EXPORT __attribute__((visibility("default")))
#define API(name, ...) EXPORT nvmlReturn_t name(__VA_ARGS__)

/* Where a handle leads. `gi` and `ci` are NULL for a whole card. */
struct target {
    unsigned index;
    struct sim_device *card;
    struct sim_gi *gi;
    struct sim_ci *ci;
};

enum handle_kind { WHOLE_CARD = 1, MIG_DEVICE, GPU_INSTANCE, COMPUTE_INSTANCE };

extern struct sim_state *sim;

nvmlReturn_t sim_enter(const char *symbol);
nvmlReturn_t sim_begin(const char *symbol, enum handle_kind kind, const void *handle, struct target *at);
nvmlReturn_t sim_end(nvmlReturn_t answer);
void *sim_handle(enum handle_kind kind, unsigned index, const struct sim_gi *gi, const struct sim_ci *ci);
int sim_alive(const struct sim_process *process);
uint64_t sim_used(const struct target *at);
void sim_mig_clear(struct sim_device *card);
unsigned sim_mig_devices(const struct sim_device *card, struct target *found);
nvmlReturn_t sim_copy(const char *text, char *out, unsigned length);
nvmlReturn_t sim_number(uint32_t value, unsigned *out);
void sim_pci(const struct sim_device *card, nvmlPciInfo_t *pci);

#define ENTER                                        \
    do {                                             \
        nvmlReturn_t refused = sim_enter(__func__);  \
        if (refused != NVML_SUCCESS) return refused; \
    } while (0)

/* A call on a card or on a MIG device: `at` is where it leads. */
#define BEGIN(handle)                                                       \
    struct target at;                                                       \
    do {                                                                    \
        nvmlReturn_t refused = sim_begin(__func__, MIG_DEVICE, handle, &at); \
        if (refused != NVML_SUCCESS) return refused;                        \
    } while (0)

/* The same for a call that only a whole card answers. */
#define BEGIN_CARD(handle)                                     \
    BEGIN(handle);                                             \
    if (at.gi) return sim_end(NVML_ERROR_NOT_SUPPORTED)

#define BEGIN_INSTANCE(kind, handle)                                  \
    struct target at;                                                 \
    do {                                                              \
        nvmlReturn_t refused = sim_begin(__func__, kind, handle, &at); \
        if (refused != NVML_SUCCESS) return refused;                  \
    } while (0)

#define NEED(condition)                                                  \
    do {                                                                 \
        if (!(condition)) return sim_end(NVML_ERROR_INVALID_ARGUMENT);   \
    } while (0)

/* A versioned structure says its size and number; anything else is another version of it. */
#define NEED_VERSION(pointer, type, number)                                              \
    do {                                                                                 \
        NEED(pointer);                                                                   \
        if ((pointer)->version != (unsigned)(sizeof(type) | ((unsigned)(number) << 24))) \
            return sim_end(NVML_ERROR_ARGUMENT_VERSION_MISMATCH);                        \
    } while (0)

#define END(answer) return sim_end(answer)

/* `type name(device, out)` for one number of the card; SIM_NA answers "not supported". */
#define GETTER(symbol, type, field)                \
    API(symbol, nvmlDevice_t device, type *out) {  \
        BEGIN_CARD(device);                        \
        NEED(out);                                 \
        if (at.card->field == SIM_NA) END(NVML_ERROR_NOT_SUPPORTED); \
        *out = (type)at.card->field;               \
        END(NVML_SUCCESS);                         \
    }

#endif
