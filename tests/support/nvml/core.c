/* The frame of the library: mapping the state, the lock, handles, faults on demand, events. */
#define _GNU_SOURCE
#include "sim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(pthread_mutex_t) <= 64, "the lock fits its place");

struct sim_state *sim;
static unsigned users;
static char mapped_path[4096];
static pthread_mutex_t mapping = PTHREAD_MUTEX_INITIALIZER;

/* ---- for the Python side ---------------------------------------------------------------------------- */

EXPORT uint64_t sim_state_size(void) { return sizeof(struct sim_state); }

EXPORT void sim_format(struct sim_state *state) {
    memset(state, 0, sizeof *state);
    state->size = sizeof *state;
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init((pthread_mutex_t *)state->lock, &kind);
    state->magic = SIM_MAGIC;
}

/* A process killed inside a call leaves the lock to the next one; each change is small enough to go on. */
EXPORT void sim_lock(struct sim_state *state) {
    if (pthread_mutex_lock((pthread_mutex_t *)state->lock) == EOWNERDEAD)
        pthread_mutex_consistent((pthread_mutex_t *)state->lock);
}

EXPORT void sim_unlock(struct sim_state *state) { pthread_mutex_unlock((pthread_mutex_t *)state->lock); }

/* With the lock held. Everybody who waits on an event set looks again. */
EXPORT void sim_post(struct sim_state *state, uint32_t device, uint64_t type, uint64_t value, uint32_t gi, uint32_t ci) {
    struct sim_event *event = &state->event[state->posted % SIM_EVENTS];
    *event = (struct sim_event){.device = device, .gi = gi, .ci = ci, .type = type, .value = value};
    state->posted++;
    __atomic_add_fetch(&state->pulse, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &state->pulse, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* With the lock held: what a reset of the card does to its instances. */
EXPORT void sim_reset_card(struct sim_state *state, uint32_t index) {
    struct sim_device *card = &state->device[index];
    sim_mig_clear(card);
    if (card->mig_current != SIM_NA) card->mig_current = card->mig_pending;
}

/* ---- init and shutdown -------------------------------------------------------------------------------- */

static nvmlReturn_t map_state(void) {
    const char *path = getenv("ALIQUOT_NVML_STATE");
    if (!path || !*path) return NVML_ERROR_DRIVER_NOT_LOADED;
    if (sim && strcmp(path, mapped_path) == 0) return NVML_SUCCESS;
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return errno == EACCES ? NVML_ERROR_NO_PERMISSION : NVML_ERROR_DRIVER_NOT_LOADED;
    struct sim_state *state = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    off_t length = lseek(file, 0, SEEK_END);
    close(file);
    if (state == MAP_FAILED) return NVML_ERROR_OPERATING_SYSTEM;
    if (length < (off_t)sizeof *state || state->magic != SIM_MAGIC || state->size != sizeof *state) {
        munmap(state, sizeof *state);
        return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    }
    sim = state; /* an older mapping stays: handles of another thread may still look at it */
    snprintf(mapped_path, sizeof mapped_path, "%s", path);
    return NVML_SUCCESS;
}

static nvmlReturn_t init(void) {
    pthread_mutex_lock(&mapping);
    nvmlReturn_t answer = map_state();
    if (answer == NVML_SUCCESS && sim->init_error) answer = (nvmlReturn_t)sim->init_error;
    if (answer == NVML_SUCCESS) users++;
    pthread_mutex_unlock(&mapping);
    return answer;
}

API(nvmlInit, void) { return init(); }
API(nvmlInit_v2, void) { return init(); }

API(nvmlInitWithFlags, unsigned flags) {
    (void)flags; /* a machine without cards opens either way */
    return init();
}

API(nvmlShutdown, void) {
    pthread_mutex_lock(&mapping);
    nvmlReturn_t answer = users ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
    if (users) users--;
    pthread_mutex_unlock(&mapping);
    return answer;
}

/* ---- the frame of a call ------------------------------------------------------------------------------ */

/* The code to answer instead, or NVML_SUCCESS. Sleeps without the lock: a hung card hangs only its caller. */
static nvmlReturn_t strike(const char *symbol, int device) {
    for (unsigned i = 0; i < SIM_FAULTS && sim->faults; i++) {
        struct sim_fault *fault = &sim->fault[i];
        if (!fault->symbol[0] || fault->left == 0) continue;
        if (strcmp(fault->symbol, "*") && strcmp(fault->symbol, symbol)) continue;
        if (fault->device >= 0 && fault->device != device) continue;
        if (fault->skip > 0) {
            fault->skip--;
            continue;
        }
        if (fault->left > 0) fault->left--;
        fault->hits++;
        nvmlReturn_t code = (nvmlReturn_t)fault->code;
        unsigned delay = fault->delay_ms;
        if (delay) {
            sim_unlock(sim);
            struct timespec pause = {delay / 1000, (long)(delay % 1000) * 1000000L};
            nanosleep(&pause, NULL);
            sim_lock(sim);
        }
        if (code != NVML_SUCCESS) return code;
    }
    return NVML_SUCCESS;
}

static nvmlReturn_t take_lock(void) {
    if (!users) return NVML_ERROR_UNINITIALIZED;
    sim_lock(sim);
    sim->calls++;
    return NVML_SUCCESS;
}

nvmlReturn_t sim_enter(const char *symbol) {
    nvmlReturn_t answer = take_lock();
    if (answer != NVML_SUCCESS) return answer;
    answer = strike(symbol, -1);
    return answer == NVML_SUCCESS ? answer : sim_end(answer);
}

nvmlReturn_t sim_end(nvmlReturn_t answer) {
    sim_unlock(sim);
    return answer;
}

/* ---- handles ------------------------------------------------------------------------------------------ */

struct handle {
    unsigned magic;
    enum handle_kind kind;
    unsigned index;
    uint64_t gi, ci; /* serial numbers: an instance made again in the same place is another one */
    struct handle *next;
};

static struct handle cards[SIM_DEVICES], *instances;

void *sim_handle(enum handle_kind kind, unsigned index, const struct sim_gi *gi, const struct sim_ci *ci) {
    if (kind == WHOLE_CARD) {
        cards[index] = (struct handle){SIM_NA, WHOLE_CARD, index, 0, 0, NULL};
        return &cards[index];
    }
    uint64_t gi_serial = gi ? gi->serial : 0, ci_serial = ci ? ci->serial : 0;
    for (struct handle *known = instances; known; known = known->next)
        if (known->kind == kind && known->index == index && known->gi == gi_serial && known->ci == ci_serial)
            return known;
    struct handle *made = malloc(sizeof *made);
    if (!made) return NULL;
    *made = (struct handle){SIM_NA, kind, index, gi_serial, ci_serial, instances};
    return instances = made;
}

static int find_instance(const struct handle *handle, struct target *at) {
    for (unsigned g = 0; g < SIM_GIS; g++) {
        struct sim_gi *gi = &at->card->gi[g];
        if (!gi->live || gi->serial != handle->gi) continue;
        at->gi = gi;
        if (handle->kind == GPU_INSTANCE) return 1;
        for (unsigned c = 0; c < SIM_CIS; c++)
            if (gi->ci[c].live && gi->ci[c].serial == handle->ci) {
                at->ci = &gi->ci[c];
                return 1;
            }
    }
    return 0;
}

/* A MIG_DEVICE call takes a whole card too; the two kinds of instance take only their own. */
nvmlReturn_t sim_begin(const char *symbol, enum handle_kind kind, const void *pointer, struct target *at) {
    const struct handle *handle = pointer;
    nvmlReturn_t answer = take_lock();
    if (answer != NVML_SUCCESS) return answer;
    if (!handle || handle->magic != SIM_NA || handle->index >= sim->devices)
        return sim_end(NVML_ERROR_INVALID_ARGUMENT);
    if (handle->kind != kind && !(kind == MIG_DEVICE && handle->kind == WHOLE_CARD))
        return sim_end(NVML_ERROR_INVALID_ARGUMENT);
    *at = (struct target){handle->index, &sim->device[handle->index], NULL, NULL};
    answer = strike(symbol, (int)handle->index);
    if (answer == NVML_SUCCESS && at->card->lost) answer = NVML_ERROR_GPU_IS_LOST;
    if (answer == NVML_SUCCESS && handle->kind != WHOLE_CARD && !find_instance(handle, at))
        answer = NVML_ERROR_NOT_FOUND;
    return answer == NVML_SUCCESS ? answer : sim_end(answer);
}

nvmlReturn_t sim_copy(const char *text, char *out, unsigned length) {
    if (!out) return NVML_ERROR_INVALID_ARGUMENT;
    if (!text[0]) return NVML_ERROR_NOT_SUPPORTED;
    if (strlen(text) >= length) return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(out, text, strlen(text) + 1);
    return NVML_SUCCESS;
}

nvmlReturn_t sim_number(uint32_t value, unsigned *out) {
    if (!out) return NVML_ERROR_INVALID_ARGUMENT;
    if (value == SIM_NA) return NVML_ERROR_NOT_SUPPORTED;
    *out = value;
    return NVML_SUCCESS;
}

/* ---- events ------------------------------------------------------------------------------------------- */

struct event_set {
    uint64_t seen; /* how many posted events this set has passed */
    unsigned long long wanted[SIM_DEVICES];
};

API(nvmlEventSetCreate, nvmlEventSet_t *set) {
    ENTER;
    NEED(set);
    struct event_set *made = calloc(1, sizeof *made);
    if (!made) END(NVML_ERROR_MEMORY);
    made->seen = sim->posted;
    *set = (nvmlEventSet_t)made;
    END(NVML_SUCCESS);
}

API(nvmlEventSetFree, nvmlEventSet_t set) {
    ENTER;
    free(set);
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetSupportedEventTypes, nvmlDevice_t device, unsigned long long *types) {
    BEGIN_CARD(device);
    NEED(types);
    *types = nvmlEventTypeXidCriticalError | nvmlEventTypeSingleBitEccError | nvmlEventTypeDoubleBitEccError |
             nvmlEventTypePState | nvmlEventTypeClock;
    END(NVML_SUCCESS);
}

API(nvmlDeviceRegisterEvents, nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) {
    BEGIN_CARD(device);
    NEED(set);
    ((struct event_set *)set)->wanted[at.index] |= types;
    END(NVML_SUCCESS);
}

/* A listener that slept through more than the ring holds continues with the oldest one kept. */
static int next_event(struct event_set *set, nvmlEventData_t *data) {
    if (sim->posted > SIM_EVENTS && set->seen < sim->posted - SIM_EVENTS) set->seen = sim->posted - SIM_EVENTS;
    while (set->seen < sim->posted) {
        const struct sim_event *event = &sim->event[set->seen++ % SIM_EVENTS];
        if (!(set->wanted[event->device] & event->type)) continue;
        *data = (nvmlEventData_t){sim_handle(WHOLE_CARD, event->device, NULL, NULL), event->type, event->value, event->gi, event->ci};
        return 1;
    }
    return 0;
}

static nvmlReturn_t wait_event(const char *symbol, struct event_set *set, nvmlEventData_t *data, unsigned timeout_ms) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t until = now.tv_sec * 1000000000LL + now.tv_nsec + timeout_ms * 1000000LL;
    nvmlReturn_t answer = sim_enter(symbol);
    if (answer != NVML_SUCCESS) return answer;
    NEED(set && data);
    for (;;) {
        if (next_event(set, data)) END(NVML_SUCCESS);
        for (unsigned i = 0; i < sim->devices; i++)
            if (set->wanted[i] && sim->device[i].lost) END(NVML_ERROR_GPU_IS_LOST);
        clock_gettime(CLOCK_MONOTONIC, &now);
        int64_t left = until - (now.tv_sec * 1000000000LL + now.tv_nsec);
        if (left <= 0) END(NVML_ERROR_TIMEOUT);
        uint32_t pulse = sim->pulse;
        sim_unlock(sim);
        struct timespec rest = {left / 1000000000LL, left % 1000000000LL};
        syscall(SYS_futex, &sim->pulse, FUTEX_WAIT, pulse, &rest, NULL, 0);
        sim_lock(sim);
    }
}

API(nvmlEventSetWait, nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms) {
    nvmlReturn_t answer = wait_event(__func__, (struct event_set *)set, data, timeout_ms);
    if (answer == NVML_SUCCESS) data->gpuInstanceId = data->computeInstanceId = 0; /* the old form has no such fields */
    return answer;
}

API(nvmlEventSetWait_v2, nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms) {
    return wait_event(__func__, (struct event_set *)set, data, timeout_ms);
}

/* ---- the system --------------------------------------------------------------------------------------- */

API(nvmlSystemGetDriverVersion, char *version, unsigned length) {
    ENTER;
    END(sim_copy(sim->driver_version, version, length));
}

API(nvmlSystemGetNVMLVersion, char *version, unsigned length) {
    ENTER;
    END(sim_copy(sim->nvml_version, version, length));
}

API(nvmlSystemGetCudaDriverVersion, int *version) {
    ENTER;
    NEED(version);
    *version = (int)sim->cuda_version;
    END(NVML_SUCCESS);
}

API(nvmlSystemGetCudaDriverVersion_v2, int *version) {
    ENTER;
    NEED(version);
    *version = (int)sim->cuda_version;
    END(NVML_SUCCESS);
}

API(nvmlSystemGetProcessName, unsigned pid, char *name, unsigned length) {
    ENTER;
    NEED(name && length);
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) END(errno == EACCES ? NVML_ERROR_NO_PERMISSION : NVML_ERROR_NOT_FOUND);
    ssize_t got = read(file, name, length - 1);
    close(file);
    name[got > 0 ? got : 0] = 0;
    END(NVML_SUCCESS);
}

EXPORT const char *nvmlErrorString(nvmlReturn_t code) {
    switch (code) {
    case NVML_SUCCESS: return "Success";
    case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
    case NVML_ERROR_NO_PERMISSION: return "Insufficient Permissions";
    case NVML_ERROR_NOT_FOUND: return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
    case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case NVML_ERROR_TIMEOUT: return "Timeout";
    case NVML_ERROR_GPU_IS_LOST: return "GPU is lost";
    case NVML_ERROR_RESET_REQUIRED: return "GPU requires reset";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH: return "Driver/library version mismatch";
    case NVML_ERROR_IN_USE: return "In use by another client";
    case NVML_ERROR_INSUFFICIENT_RESOURCES: return "Insufficient Resources";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH: return "The provided version is invalid/unsupported";
    default: return "Unknown Error";
    }
}
