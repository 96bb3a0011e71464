/* Cutting a card: mode, GPU instances in placements, compute instances inside them, the MIG devices they make.
 *
 * Where nobody names a placement, the driver takes the one that spoils the fewest others; so 1g.5gb goes to 6,
 * then 4, and asking for 3g after two 1g and a 2g finds no room. A GPU instance's id is its place in the tree
 * of halves, possibly rotated by what the chip lacks: nobody should compute it. MIG devices are numbered by
 * these ids, so a new instance renumbers the others.
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const unsigned CI_SLICES[NVML_COMPUTE_INSTANCE_PROFILE_COUNT] = {1, 2, 3, 4, 7, 8, 6, 1};

/* ---- mode --------------------------------------------------------------------------------------------- */

static int any_process(const struct sim_device *card) {
    for (unsigned i = 0; i < SIM_PROCESSES; i++)
        if (sim_alive(&card->process[i])) return 1;
    return 0;
}

static int any_instance(const struct sim_device *card) {
    for (unsigned g = 0; g < SIM_GIS; g++)
        if (card->gi[g].live) return 1;
    return 0;
}

void sim_mig_clear(struct sim_device *card) { memset(card->gi, 0, sizeof card->gi); }

API(nvmlDeviceGetMigMode, nvmlDevice_t device, unsigned *now, unsigned *next) {
    BEGIN_CARD(device);
    NEED(now && next);
    if (at.card->mig_current == SIM_NA) END(NVML_ERROR_NOT_SUPPORTED);
    *now = at.card->mig_current;
    *next = at.card->mig_pending;
    END(NVML_SUCCESS);
}

API(nvmlDeviceSetMigMode, nvmlDevice_t device, unsigned mode, nvmlReturn_t *status) {
    BEGIN_CARD(device);
    NEED(status && mode <= 1);
    if (!sim->privileged) END(NVML_ERROR_NO_PERMISSION);
    if (at.card->mig_current == SIM_NA) END(NVML_ERROR_NOT_SUPPORTED);
    if (mode == at.card->mig_current && mode == at.card->mig_pending) {
        *status = NVML_SUCCESS;
        END(NVML_SUCCESS);
    }
    if (any_instance(at.card) || any_process(at.card)) {
        *status = NVML_ERROR_IN_USE;
        END(NVML_ERROR_IN_USE);
    }
    at.card->mig_pending = mode;
    *status = NVML_SUCCESS;
    if (at.card->mig_change == SIM_MIG_AT_ONCE)
        at.card->mig_current = mode;
    else if (mode != at.card->mig_current)
        *status = NVML_ERROR_RESET_REQUIRED;
    END(NVML_SUCCESS);
}

/* ---- room for GPU instances --------------------------------------------------------------------------- */

static int overlap(unsigned a, unsigned a_size, unsigned b, unsigned b_size) {
    return a < b + b_size && b < a + a_size;
}

static unsigned live_of(const struct sim_device *card, unsigned profile) {
    unsigned live = 0;
    for (unsigned g = 0; g < SIM_GIS; g++) live += card->gi[g].live && card->gi[g].profile == profile;
    return live;
}

/* Memory units free at `start`, compute slices left, one media extension a card, instances of its kind left. */
static int fits(const struct sim_device *card, unsigned p, unsigned start) {
    const struct sim_profile *wanted = &card->profile[p];
    unsigned slices = wanted->compute_slices;
    for (unsigned g = 0; g < SIM_GIS; g++) {
        if (!card->gi[g].live) continue;
        const struct sim_profile *taken = &card->profile[card->gi[g].profile];
        if (overlap(start, wanted->size, card->gi[g].start, taken->size)) return 0;
        if (wanted->media_extension && taken->media_extension) return 0;
        slices += taken->compute_slices;
    }
    return slices <= card->mig_slices && live_of(card, p) < wanted->max_instances;
}

/* Placements of all profiles that are possible now and would not be with `p` at `start`. */
static unsigned harm(const struct sim_device *card, unsigned p, unsigned start) {
    unsigned spoilt = 0;
    for (unsigned other = 0; other < card->profiles; other++)
        for (unsigned i = 0; i < card->profile[other].placements; i++) {
            unsigned there = card->profile[other].starts[i];
            spoilt += fits(card, other, there) && overlap(start, card->profile[p].size, there, card->profile[other].size);
        }
    return spoilt;
}

static int choose(const struct sim_device *card, unsigned p, unsigned *start) {
    unsigned best = SIM_NA;
    for (unsigned i = 0; i < card->profile[p].placements; i++) {
        unsigned at = card->profile[p].starts[i];
        if (!fits(card, p, at)) continue;
        unsigned spoilt = harm(card, p, at);
        if (spoilt >= best) continue;
        best = spoilt;
        *start = at;
    }
    return best != SIM_NA;
}

/* How many more of profile `p` fit, filling greedily on a copy. */
static unsigned capacity(const struct sim_device *card, unsigned p) {
    struct sim_gi kept[SIM_GIS];
    struct sim_device *work = (struct sim_device *)card;
    memcpy(kept, work->gi, sizeof kept);
    unsigned more = 0;
    for (unsigned i = 0; i < card->profile[p].placements; i++) {
        if (!fits(work, p, card->profile[p].starts[i])) continue;
        for (unsigned g = 0; g < SIM_GIS; g++)
            if (!work->gi[g].live) {
                work->gi[g] = (struct sim_gi){.live = 1, .profile = p, .start = card->profile[p].starts[i]};
                more++;
                break;
            }
    }
    memcpy(work->gi, kept, sizeof kept);
    return more;
}

static unsigned gi_id(const struct sim_device *card, unsigned size, unsigned start) {
    unsigned units = card->mig_units ? card->mig_units : 1, turned = (start + card->mig_rotation) % units;
    return units / size - 1 + turned / size;
}

static int by_profile_id(const struct sim_device *card, unsigned id, unsigned *p) {
    for (*p = 0; *p < card->profiles; (*p)++)
        if (card->profile[*p].id == id) return 1;
    return 0;
}

static int by_profile_enum(const struct sim_device *card, unsigned number, unsigned *p) {
    for (*p = 0; *p < card->profiles; (*p)++)
        if (card->profile[*p].enumeration == number) return 1;
    return 0;
}

/* ---- GPU instance profiles ---------------------------------------------------------------------------- */

static void fill_v1(const struct sim_profile *from, nvmlGpuInstanceProfileInfo_t *out) {
    *out = (nvmlGpuInstanceProfileInfo_t){from->id, 0, from->compute_slices, from->max_instances, from->sm_count,
        from->copy_engines, from->decoders, from->encoders, from->jpeg, from->ofa, from->memory_mib};
}

API(nvmlDeviceGetGpuInstanceProfileInfo, nvmlDevice_t device, unsigned profile, nvmlGpuInstanceProfileInfo_t *out) {
    BEGIN_CARD(device);
    unsigned p;
    NEED(out && profile < NVML_GPU_INSTANCE_PROFILE_COUNT);
    if (at.card->mig_current != 1 || !by_profile_enum(at.card, profile, &p)) END(NVML_ERROR_NOT_SUPPORTED);
    fill_v1(&at.card->profile[p], out);
    END(NVML_SUCCESS);
}

static nvmlReturn_t fill_versioned(const struct sim_profile *from, nvmlGpuInstanceProfileInfo_v2_t *out) {
    if (out->version == (unsigned)(sizeof(nvmlGpuInstanceProfileInfo_v2_t) | 2u << 24)) {
        unsigned version = out->version;
        *out = (nvmlGpuInstanceProfileInfo_v2_t){version, from->id, 0, from->compute_slices, from->max_instances, from->sm_count,
            from->copy_engines, from->decoders, from->encoders, from->jpeg, from->ofa, from->memory_mib, ""};
        snprintf(out->name, sizeof out->name, "MIG %s", from->name);
        return NVML_SUCCESS;
    }
    if (out->version == (unsigned)(sizeof(nvmlGpuInstanceProfileInfo_v3_t) | 3u << 24)) {
        nvmlGpuInstanceProfileInfo_v3_t *third = (nvmlGpuInstanceProfileInfo_v3_t *)out;
        unsigned version = out->version;
        *third = (nvmlGpuInstanceProfileInfo_v3_t){version, from->id, from->compute_slices, from->max_instances, from->sm_count,
            from->copy_engines, from->decoders, from->encoders, from->jpeg, from->ofa, from->memory_mib, "", 0};
        snprintf(third->name, sizeof third->name, "MIG %s", from->name);
        return NVML_SUCCESS;
    }
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
}

API(nvmlDeviceGetGpuInstanceProfileInfoV, nvmlDevice_t device, unsigned profile, nvmlGpuInstanceProfileInfo_v2_t *out) {
    BEGIN_CARD(device);
    unsigned p;
    NEED(out && profile < NVML_GPU_INSTANCE_PROFILE_COUNT);
    if (at.card->mig_current != 1 || !by_profile_enum(at.card, profile, &p)) END(NVML_ERROR_NOT_SUPPORTED);
    END(fill_versioned(&at.card->profile[p], out));
}

API(nvmlDeviceGetGpuInstanceProfileInfoByIdV, nvmlDevice_t device, unsigned id, nvmlGpuInstanceProfileInfo_v2_t *out) {
    BEGIN_CARD(device);
    unsigned p;
    NEED(out);
    if (at.card->mig_current != 1 || !by_profile_id(at.card, id, &p)) END(NVML_ERROR_NOT_SUPPORTED);
    END(fill_versioned(&at.card->profile[p], out));
}

static nvmlReturn_t placements(const char *symbol, nvmlDevice_t device, unsigned id, nvmlGpuInstancePlacement_t *out, unsigned *count) {
    struct target at;
    unsigned p;
    nvmlReturn_t answer = sim_begin(symbol, MIG_DEVICE, device, &at);
    if (answer != NVML_SUCCESS) return answer;
    NEED(count);
    if (at.gi || at.card->mig_current != 1 || !by_profile_id(at.card, id, &p)) END(NVML_ERROR_NOT_SUPPORTED);
    const struct sim_profile *profile = &at.card->profile[p];
    unsigned room = *count;
    *count = profile->placements;
    if (!out) END(NVML_SUCCESS);
    if (room < profile->placements) END(NVML_ERROR_INSUFFICIENT_SIZE);
    for (unsigned i = 0; i < profile->placements; i++) out[i] = (nvmlGpuInstancePlacement_t){profile->starts[i], profile->size};
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetGpuInstancePossiblePlacements, nvmlDevice_t d, unsigned id, nvmlGpuInstancePlacement_t *out, unsigned *count) {
    return placements(__func__, d, id, out, count);
}

API(nvmlDeviceGetGpuInstancePossiblePlacements_v2, nvmlDevice_t d, unsigned id, nvmlGpuInstancePlacement_t *out, unsigned *count) {
    return placements(__func__, d, id, out, count);
}

API(nvmlDeviceGetGpuInstanceRemainingCapacity, nvmlDevice_t device, unsigned id, unsigned *count) {
    BEGIN_CARD(device);
    unsigned p;
    NEED(count);
    if (at.card->mig_current != 1 || !by_profile_id(at.card, id, &p)) END(NVML_ERROR_NOT_SUPPORTED);
    *count = capacity(at.card, p);
    END(NVML_SUCCESS);
}

/* ---- GPU instances ------------------------------------------------------------------------------------ */

static nvmlReturn_t create(const char *symbol, nvmlDevice_t device, unsigned id, const nvmlGpuInstancePlacement_t *placement, nvmlGpuInstance_t *out) {
    struct target at;
    unsigned p, start = 0, found = 0;
    nvmlReturn_t answer = sim_begin(symbol, MIG_DEVICE, device, &at);
    if (answer != NVML_SUCCESS) return answer;
    NEED(out);
    if (at.gi || at.card->mig_current != 1 || !by_profile_id(at.card, id, &p)) END(NVML_ERROR_NOT_SUPPORTED);
    if (!sim->privileged) END(NVML_ERROR_NO_PERMISSION);
    if (placement) {
        for (unsigned i = 0; i < at.card->profile[p].placements; i++) found |= at.card->profile[p].starts[i] == placement->start;
        NEED(found && placement->size == at.card->profile[p].size);
        start = placement->start;
        if (!fits(at.card, p, start)) END(NVML_ERROR_INSUFFICIENT_RESOURCES);
    } else if (!choose(at.card, p, &start))
        END(NVML_ERROR_INSUFFICIENT_RESOURCES);
    for (unsigned g = 0; g < SIM_GIS; g++) {
        if (at.card->gi[g].live) continue;
        at.card->gi[g] = (struct sim_gi){.live = 1, .id = gi_id(at.card, at.card->profile[p].size, start), .profile = p,
                                         .start = start, .serial = ++sim->serial};
        *out = sim_handle(GPU_INSTANCE, at.index, &at.card->gi[g], NULL);
        END(NVML_SUCCESS);
    }
    END(NVML_ERROR_INSUFFICIENT_RESOURCES);
}

API(nvmlDeviceCreateGpuInstance, nvmlDevice_t device, unsigned id, nvmlGpuInstance_t *out) {
    return create(__func__, device, id, NULL, out);
}

API(nvmlDeviceCreateGpuInstanceWithPlacement, nvmlDevice_t device, unsigned id, const nvmlGpuInstancePlacement_t *placement, nvmlGpuInstance_t *out) {
    return create(__func__, device, id, placement, out);
}

static int gi_busy(const struct target *at) {
    for (unsigned c = 0; c < SIM_CIS; c++)
        if (at->gi->ci[c].live) return 1;
    for (unsigned i = 0; i < SIM_PROCESSES; i++)
        if (at->card->process[i].gi == at->gi->id && sim_alive(&at->card->process[i])) return 1;
    return 0;
}

API(nvmlGpuInstanceDestroy, nvmlGpuInstance_t instance) {
    BEGIN_INSTANCE(GPU_INSTANCE, instance);
    if (!sim->privileged) END(NVML_ERROR_NO_PERMISSION);
    if (gi_busy(&at)) END(NVML_ERROR_IN_USE);
    memset(at.gi, 0, sizeof *at.gi);
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetGpuInstances, nvmlDevice_t device, unsigned id, nvmlGpuInstance_t *out, unsigned *count) {
    BEGIN_CARD(device);
    unsigned p, found = 0;
    NEED(out && count);
    if (at.card->mig_current != 1 || !by_profile_id(at.card, id, &p)) END(NVML_ERROR_NOT_SUPPORTED);
    for (unsigned g = 0; g < SIM_GIS; g++)
        if (at.card->gi[g].live && at.card->gi[g].profile == p) out[found++] = sim_handle(GPU_INSTANCE, at.index, &at.card->gi[g], NULL);
    *count = found;
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetGpuInstanceById, nvmlDevice_t device, unsigned id, nvmlGpuInstance_t *out) {
    BEGIN_CARD(device);
    NEED(out);
    if (at.card->mig_current != 1) END(NVML_ERROR_NOT_SUPPORTED);
    for (unsigned g = 0; g < SIM_GIS; g++)
        if (at.card->gi[g].live && at.card->gi[g].id == id) {
            *out = sim_handle(GPU_INSTANCE, at.index, &at.card->gi[g], NULL);
            END(NVML_SUCCESS);
        }
    END(NVML_ERROR_NOT_FOUND);
}

API(nvmlGpuInstanceGetInfo, nvmlGpuInstance_t instance, nvmlGpuInstanceInfo_t *out) {
    BEGIN_INSTANCE(GPU_INSTANCE, instance);
    NEED(out);
    const struct sim_profile *profile = &at.card->profile[at.gi->profile];
    *out = (nvmlGpuInstanceInfo_t){sim_handle(WHOLE_CARD, at.index, NULL, NULL), at.gi->id, profile->id, {at.gi->start, profile->size}};
    END(NVML_SUCCESS);
}

/* ---- compute instances -------------------------------------------------------------------------------- */

/* 1c, 2c, ... inside a GPU instance; the double-memory slice has a 1c of its own number. */
static int ci_allowed(const struct target *at, unsigned profile) {
    unsigned slices = at->card->profile[at->gi->profile].compute_slices;
    int doubled = slices == 1 && at->card->profile[at->gi->profile].size == 2;
    if (profile >= NVML_COMPUTE_INSTANCE_PROFILE_COUNT || !CI_SLICES[profile]) return 0;
    if (doubled) return profile == NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE_REV1;
    return profile != NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE_REV1 && CI_SLICES[profile] <= slices;
}

static int ci_fits(const struct target *at, unsigned start, unsigned slices) {
    if (start + slices > at->card->profile[at->gi->profile].compute_slices) return 0;
    for (unsigned c = 0; c < SIM_CIS; c++)
        if (at->gi->ci[c].live && overlap(start, slices, at->gi->ci[c].start, at->gi->ci[c].slices)) return 0;
    return 1;
}

static unsigned ci_capacity(const struct target *at, unsigned profile) {
    unsigned more = 0, slices = CI_SLICES[profile];
    for (unsigned start = 0; start < 8; start++)
        if (ci_fits(at, start, slices)) {
            more++;
            start += slices - 1;
        }
    return more;
}

static void ci_uuid(const struct target *at, struct sim_ci *ci) {
    char seed[256];
    uint64_t hash[2] = {0xcbf29ce484222325ULL, 0x84222325cbf29ce4ULL};
    snprintf(seed, sizeof seed, "%s/%u/%u/%u/%u", at->card->uuid, at->gi->id, ci->id, ci->profile, at->card->mig_salt);
    for (unsigned half = 0; half < 2; half++)
        for (const char *c = seed; *c; c++) hash[half] = (hash[half] ^ (unsigned char)*c) * 0x100000001b3ULL + half;
    snprintf(ci->uuid, sizeof ci->uuid, "MIG-%08x-%04x-5%03x-8%03x-%012llx", (unsigned)(hash[0] >> 32), (unsigned)(hash[0] >> 16 & 0xffff),
             (unsigned)(hash[0] & 0xfff), (unsigned)(hash[1] >> 52), (unsigned long long)(hash[1] & 0xffffffffffffULL));
}

static void ci_profile(const struct target *at, unsigned number, nvmlComputeInstanceProfileInfo_t *out) {
    const struct sim_profile *from = &at->card->profile[at->gi->profile];
    unsigned slices = CI_SLICES[number];
    *out = (nvmlComputeInstanceProfileInfo_t){number, slices, from->compute_slices / slices,
        from->sm_count / from->compute_slices * slices, from->copy_engines, from->decoders, from->encoders, from->jpeg, from->ofa};
    if (slices == from->compute_slices) out->multiprocessorCount = from->sm_count;
}

API(nvmlGpuInstanceGetComputeInstanceProfileInfo, nvmlGpuInstance_t instance, unsigned profile, unsigned engine, nvmlComputeInstanceProfileInfo_t *out) {
    BEGIN_INSTANCE(GPU_INSTANCE, instance);
    NEED(out && profile < NVML_COMPUTE_INSTANCE_PROFILE_COUNT && engine == NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED);
    if (!ci_allowed(&at, profile)) END(NVML_ERROR_NOT_SUPPORTED);
    ci_profile(&at, profile, out);
    END(NVML_SUCCESS);
}

API(nvmlGpuInstanceGetComputeInstanceProfileInfoV, nvmlGpuInstance_t instance, unsigned profile, unsigned engine, nvmlComputeInstanceProfileInfo_v2_t *out) {
    BEGIN_INSTANCE(GPU_INSTANCE, instance);
    NEED(out && profile < NVML_COMPUTE_INSTANCE_PROFILE_COUNT && engine == NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED);
    int third = out->version == (unsigned)(sizeof(nvmlComputeInstanceProfileInfo_v3_t) | 3u << 24);
    if (!third && out->version != (unsigned)(sizeof(nvmlComputeInstanceProfileInfo_v2_t) | 2u << 24)) END(NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    if (!ci_allowed(&at, profile)) END(NVML_ERROR_NOT_SUPPORTED);
    nvmlComputeInstanceProfileInfo_t plain;
    ci_profile(&at, profile, &plain);
    out->id = plain.id;
    out->sliceCount = plain.sliceCount;
    out->instanceCount = plain.instanceCount;
    out->multiprocessorCount = plain.multiprocessorCount;
    out->sharedCopyEngineCount = plain.sharedCopyEngineCount;
    out->sharedDecoderCount = plain.sharedDecoderCount;
    out->sharedEncoderCount = plain.sharedEncoderCount;
    out->sharedJpegCount = plain.sharedJpegCount;
    out->sharedOfaCount = plain.sharedOfaCount;
    const struct sim_profile *gi = &at.card->profile[at.gi->profile];
    if (plain.sliceCount == gi->compute_slices)
        snprintf(out->name, sizeof out->name, "MIG %s", gi->name);
    else
        snprintf(out->name, sizeof out->name, "MIG %uc.%s", plain.sliceCount, gi->name);
    if (third) ((nvmlComputeInstanceProfileInfo_v3_t *)out)->capabilities = 0;
    END(NVML_SUCCESS);
}

API(nvmlGpuInstanceGetComputeInstanceRemainingCapacity, nvmlGpuInstance_t instance, unsigned profile, unsigned *count) {
    BEGIN_INSTANCE(GPU_INSTANCE, instance);
    NEED(count);
    if (!ci_allowed(&at, profile)) END(NVML_ERROR_NOT_SUPPORTED);
    *count = ci_capacity(&at, profile);
    END(NVML_SUCCESS);
}

API(nvmlGpuInstanceGetComputeInstancePossiblePlacements, nvmlGpuInstance_t instance, unsigned profile, nvmlComputeInstancePlacement_t *out, unsigned *count) {
    BEGIN_INSTANCE(GPU_INSTANCE, instance);
    NEED(count);
    if (!ci_allowed(&at, profile)) END(NVML_ERROR_NOT_SUPPORTED);
    unsigned room = *count, found = 0, slices = CI_SLICES[profile];
    for (unsigned start = 0; start + slices <= at.card->profile[at.gi->profile].compute_slices; start += slices) {
        if (out && found < room) out[found] = (nvmlComputeInstancePlacement_t){start, slices};
        found++;
    }
    *count = found;
    END(out && found > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS);
}

static nvmlReturn_t create_ci(const char *symbol, nvmlGpuInstance_t instance, unsigned profile, const nvmlComputeInstancePlacement_t *placement, nvmlComputeInstance_t *out) {
    struct target at;
    nvmlReturn_t answer = sim_begin(symbol, GPU_INSTANCE, instance, &at);
    if (answer != NVML_SUCCESS) return answer;
    NEED(out);
    if (!sim->privileged) END(NVML_ERROR_NO_PERMISSION);
    if (!ci_allowed(&at, profile)) END(NVML_ERROR_NOT_SUPPORTED);
    unsigned slices = CI_SLICES[profile], start = placement ? placement->start : 0;
    NEED(!placement || placement->size == slices);
    while (!placement && start < 8 && !ci_fits(&at, start, slices)) start++;
    if (!ci_fits(&at, start, slices)) END(NVML_ERROR_INSUFFICIENT_RESOURCES);
    unsigned id = 0, slot = 0;
    for (unsigned c = 0; c < SIM_CIS; c++)
        if (at.gi->ci[c].live && at.gi->ci[c].id == id) id++, c = SIM_NA; /* the lowest free number: look again */
    while (at.gi->ci[slot].live) slot++;
    at.gi->ci[slot] = (struct sim_ci){.live = 1, .id = id, .profile = profile, .start = start, .slices = slices, .serial = ++sim->serial};
    ci_uuid(&at, &at.gi->ci[slot]);
    *out = sim_handle(COMPUTE_INSTANCE, at.index, at.gi, &at.gi->ci[slot]);
    END(NVML_SUCCESS);
}

API(nvmlGpuInstanceCreateComputeInstance, nvmlGpuInstance_t instance, unsigned profile, nvmlComputeInstance_t *out) {
    return create_ci(__func__, instance, profile, NULL, out);
}

API(nvmlGpuInstanceCreateComputeInstanceWithPlacement, nvmlGpuInstance_t instance, unsigned profile,
    const nvmlComputeInstancePlacement_t *placement, nvmlComputeInstance_t *out) {
    return create_ci(__func__, instance, profile, placement, out);
}

API(nvmlComputeInstanceDestroy, nvmlComputeInstance_t instance) {
    BEGIN_INSTANCE(COMPUTE_INSTANCE, instance);
    if (!sim->privileged) END(NVML_ERROR_NO_PERMISSION);
    for (unsigned i = 0; i < SIM_PROCESSES; i++) {
        const struct sim_process *process = &at.card->process[i];
        if (process->gi == at.gi->id && process->ci == at.ci->id && sim_alive(process)) END(NVML_ERROR_IN_USE);
    }
    memset(at.ci, 0, sizeof *at.ci);
    END(NVML_SUCCESS);
}

API(nvmlGpuInstanceGetComputeInstances, nvmlGpuInstance_t instance, unsigned profile, nvmlComputeInstance_t *out, unsigned *count) {
    BEGIN_INSTANCE(GPU_INSTANCE, instance);
    NEED(out && count);
    if (!ci_allowed(&at, profile)) END(NVML_ERROR_NOT_SUPPORTED);
    unsigned found = 0;
    for (unsigned c = 0; c < SIM_CIS; c++)
        if (at.gi->ci[c].live && at.gi->ci[c].profile == profile)
            out[found++] = sim_handle(COMPUTE_INSTANCE, at.index, at.gi, &at.gi->ci[c]);
    *count = found;
    END(NVML_SUCCESS);
}

API(nvmlGpuInstanceGetComputeInstanceById, nvmlGpuInstance_t instance, unsigned id, nvmlComputeInstance_t *out) {
    BEGIN_INSTANCE(GPU_INSTANCE, instance);
    NEED(out);
    for (unsigned c = 0; c < SIM_CIS; c++)
        if (at.gi->ci[c].live && at.gi->ci[c].id == id) {
            *out = sim_handle(COMPUTE_INSTANCE, at.index, at.gi, &at.gi->ci[c]);
            END(NVML_SUCCESS);
        }
    END(NVML_ERROR_NOT_FOUND);
}

static nvmlReturn_t ci_told(const char *symbol, nvmlComputeInstance_t instance, nvmlComputeInstanceInfo_t *out) {
    struct target at;
    nvmlReturn_t answer = sim_begin(symbol, COMPUTE_INSTANCE, instance, &at);
    if (answer != NVML_SUCCESS) return answer;
    NEED(out);
    *out = (nvmlComputeInstanceInfo_t){sim_handle(WHOLE_CARD, at.index, NULL, NULL), sim_handle(GPU_INSTANCE, at.index, at.gi, NULL),
                                       at.ci->id, at.ci->profile, {at.ci->start, at.ci->slices}};
    END(NVML_SUCCESS);
}

API(nvmlComputeInstanceGetInfo, nvmlComputeInstance_t instance, nvmlComputeInstanceInfo_t *out) { return ci_told(__func__, instance, out); }
API(nvmlComputeInstanceGetInfo_v2, nvmlComputeInstance_t instance, nvmlComputeInstanceInfo_t *out) { return ci_told(__func__, instance, out); }

/* ---- MIG devices -------------------------------------------------------------------------------------- */

static int by_ids(const void *left, const void *right) {
    const struct target *a = left, *b = right;
    if (a->gi->id != b->gi->id) return a->gi->id < b->gi->id ? -1 : 1;
    return a->ci->id < b->ci->id ? -1 : a->ci->id > b->ci->id;
}

/* In the order of their numbers; `found` may be NULL. An instance without a compute instance is no device. */
unsigned sim_mig_devices(const struct sim_device *card, struct target *found) {
    unsigned count = 0, index = (unsigned)(card - sim->device);
    for (unsigned g = 0; g < SIM_GIS; g++)
        for (unsigned c = 0; card->gi[g].live && c < SIM_CIS; c++) {
            if (!card->gi[g].ci[c].live) continue;
            if (found) found[count] = (struct target){index, (struct sim_device *)card, (struct sim_gi *)&card->gi[g], (struct sim_ci *)&card->gi[g].ci[c]};
            count++;
        }
    if (found) qsort(found, count, sizeof *found, by_ids);
    return count;
}

API(nvmlDeviceIsMigDeviceHandle, nvmlDevice_t device, unsigned *is) {
    BEGIN(device);
    END(sim_number(at.gi != NULL, is));
}

API(nvmlDeviceGetMaxMigDeviceCount, nvmlDevice_t device, unsigned *count) {
    BEGIN(device);
    END(sim_number(at.card->mig_current == SIM_NA ? 0 : at.card->mig_slices, count));
}

API(nvmlDeviceGetMigDeviceHandleByIndex, nvmlDevice_t device, unsigned index, nvmlDevice_t *out) {
    BEGIN_CARD(device);
    struct target found[SIM_GIS * SIM_CIS];
    NEED(out);
    if (at.card->mig_current == SIM_NA) END(NVML_ERROR_NOT_SUPPORTED);
    NEED(index < at.card->mig_slices);
    if (index >= sim_mig_devices(at.card, found)) END(NVML_ERROR_NOT_FOUND);
    *out = sim_handle(MIG_DEVICE, at.index, found[index].gi, found[index].ci);
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, nvmlDevice_t device, nvmlDevice_t *out) {
    BEGIN(device);
    NEED(out && at.gi);
    *out = sim_handle(WHOLE_CARD, at.index, NULL, NULL);
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetGpuInstanceId, nvmlDevice_t device, unsigned *id) {
    BEGIN(device);
    NEED(at.gi);
    END(sim_number(at.gi->id, id));
}

API(nvmlDeviceGetComputeInstanceId, nvmlDevice_t device, unsigned *id) {
    BEGIN(device);
    NEED(at.gi);
    END(sim_number(at.ci->id, id));
}

static nvmlReturn_t attributes(const char *symbol, nvmlDevice_t device, nvmlDeviceAttributes_t *out) {
    struct target at;
    nvmlReturn_t answer = sim_begin(symbol, MIG_DEVICE, device, &at);
    if (answer != NVML_SUCCESS) return answer;
    NEED(out);
    if (!at.gi) END(NVML_ERROR_NOT_SUPPORTED);
    const struct sim_profile *profile = &at.card->profile[at.gi->profile];
    nvmlComputeInstanceProfileInfo_t ci;
    ci_profile(&at, at.ci->profile, &ci);
    *out = (nvmlDeviceAttributes_t){ci.multiprocessorCount, profile->copy_engines, profile->decoders, profile->encoders, profile->jpeg,
                                    profile->ofa, profile->compute_slices, at.ci->slices, profile->memory_mib};
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetAttributes, nvmlDevice_t device, nvmlDeviceAttributes_t *out) { return attributes(__func__, device, out); }
API(nvmlDeviceGetAttributes_v2, nvmlDevice_t device, nvmlDeviceAttributes_t *out) { return attributes(__func__, device, out); }
