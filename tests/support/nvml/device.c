/* One card: how to find it, what it is, how full and how busy it is, its modes. */
#include "sim.h"

#include <string.h>
#include <stdio.h>

/* ---- finding cards ------------------------------------------------------------------------------------ */

static nvmlReturn_t count(const char *symbol, unsigned *out) {
    nvmlReturn_t answer = sim_enter(symbol);
    if (answer != NVML_SUCCESS) return answer;
    NEED(out);
    *out = sim->devices;
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetCount, unsigned *out) { return count(__func__, out); }
API(nvmlDeviceGetCount_v2, unsigned *out) { return count(__func__, out); }

static nvmlReturn_t by_index(const char *symbol, unsigned index, nvmlDevice_t *device) {
    struct target at;
    if (index >= SIM_DEVICES || !sim || index >= sim->devices || !device) {
        nvmlReturn_t answer = sim_enter(symbol);
        return answer != NVML_SUCCESS ? answer : sim_end(NVML_ERROR_INVALID_ARGUMENT);
    }
    nvmlReturn_t answer = sim_begin(symbol, WHOLE_CARD, sim_handle(WHOLE_CARD, index, NULL, NULL), &at);
    if (answer != NVML_SUCCESS) return answer;
    *device = sim_handle(WHOLE_CARD, index, NULL, NULL);
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetHandleByIndex, unsigned index, nvmlDevice_t *device) { return by_index(__func__, index, device); }
API(nvmlDeviceGetHandleByIndex_v2, unsigned index, nvmlDevice_t *device) { return by_index(__func__, index, device); }

API(nvmlDeviceGetHandleByUUID, const char *uuid, nvmlDevice_t *device) {
    ENTER;
    NEED(uuid && device);
    struct target found[SIM_GIS * SIM_CIS];
    for (unsigned i = 0; i < sim->devices; i++) {
        const struct sim_device *card = &sim->device[i];
        if (!strcmp(card->uuid, uuid)) {
            if (card->lost) END(NVML_ERROR_GPU_IS_LOST);
            *device = sim_handle(WHOLE_CARD, i, NULL, NULL);
            END(NVML_SUCCESS);
        }
        unsigned slices = sim_mig_devices(card, found);
        for (unsigned m = 0; m < slices; m++) {
            char legacy[160];
            snprintf(legacy, sizeof legacy, "MIG-%s/%u/%u", card->uuid, found[m].gi->id, found[m].ci->id);
            if (strcmp(found[m].ci->uuid, uuid) && strcmp(legacy, uuid)) continue;
            *device = sim_handle(MIG_DEVICE, i, found[m].gi, found[m].ci);
            END(NVML_SUCCESS);
        }
    }
    END(NVML_ERROR_NOT_FOUND);
}

API(nvmlDeviceGetHandleBySerial, const char *serial, nvmlDevice_t *device) {
    ENTER;
    NEED(serial && device);
    for (unsigned i = 0; i < sim->devices; i++)
        if (sim->device[i].serial[0] && !strcmp(sim->device[i].serial, serial)) {
            *device = sim_handle(WHOLE_CARD, i, NULL, NULL);
            END(NVML_SUCCESS);
        }
    END(NVML_ERROR_NOT_FOUND);
}

static nvmlReturn_t by_bus_id(const char *symbol, const char *bus_id, nvmlDevice_t *device) {
    nvmlReturn_t answer = sim_enter(symbol);
    if (answer != NVML_SUCCESS) return answer;
    NEED(bus_id && device);
    unsigned domain = 0, bus = 0, slot = 0;
    if (sscanf(bus_id, "%x:%x:%x.", &domain, &bus, &slot) != 3) {
        domain = 0;
        if (sscanf(bus_id, "%x:%x.", &bus, &slot) != 2) END(NVML_ERROR_INVALID_ARGUMENT);
    }
    for (unsigned i = 0; i < sim->devices; i++) {
        const struct sim_device *card = &sim->device[i];
        if (card->domain != domain || card->bus != bus || card->slot != slot) continue;
        if (card->lost) END(NVML_ERROR_GPU_IS_LOST);
        *device = sim_handle(WHOLE_CARD, i, NULL, NULL);
        END(NVML_SUCCESS);
    }
    END(NVML_ERROR_NOT_FOUND);
}

API(nvmlDeviceGetHandleByPciBusId, const char *id, nvmlDevice_t *device) { return by_bus_id(__func__, id, device); }
API(nvmlDeviceGetHandleByPciBusId_v2, const char *id, nvmlDevice_t *device) { return by_bus_id(__func__, id, device); }

/* ---- what it is --------------------------------------------------------------------------------------- */

API(nvmlDeviceGetName, nvmlDevice_t device, char *name, unsigned length) {
    BEGIN(device);
    if (!at.gi) END(sim_copy(at.card->name, name, length));
    char text[192];
    const struct sim_profile *profile = &at.card->profile[at.gi->profile];
    if (at.ci->slices == profile->compute_slices)
        snprintf(text, sizeof text, "%s MIG %s", at.card->name, profile->name);
    else
        snprintf(text, sizeof text, "%s MIG %uc.%s", at.card->name, at.ci->slices, profile->name);
    END(sim_copy(text, name, length));
}

API(nvmlDeviceGetUUID, nvmlDevice_t device, char *uuid, unsigned length) {
    BEGIN(device);
    END(sim_copy(at.ci ? at.ci->uuid : at.card->uuid, uuid, length));
}

API(nvmlDeviceGetSerial, nvmlDevice_t device, char *serial, unsigned length) {
    BEGIN_CARD(device);
    END(sim_copy(at.card->serial, serial, length));
}

API(nvmlDeviceGetBoardPartNumber, nvmlDevice_t device, char *number, unsigned length) {
    BEGIN_CARD(device);
    END(sim_copy(at.card->part_number, number, length));
}

API(nvmlDeviceGetVbiosVersion, nvmlDevice_t device, char *version, unsigned length) {
    BEGIN_CARD(device);
    END(sim_copy("90.00.00.00.01", version, length));
}

API(nvmlDeviceGetIndex, nvmlDevice_t device, unsigned *index) {
    BEGIN_CARD(device);
    END(sim_number(at.index, index));
}

void sim_pci(const struct sim_device *card, nvmlPciInfo_t *pci) {
    memset(pci, 0, sizeof *pci);
    snprintf(pci->busId, sizeof pci->busId, "%s", card->bus_id);
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", card->domain & 0xffff, card->bus & 0xff, card->slot & 0xff);
    pci->domain = card->domain;
    pci->bus = card->bus;
    pci->device = card->slot;
    pci->pciDeviceId = card->pci_device_id;
    pci->pciSubSystemId = card->pci_subsystem_id;
}

static nvmlReturn_t pci(const char *symbol, nvmlDevice_t device, nvmlPciInfo_t *out) {
    struct target at;
    nvmlReturn_t answer = sim_begin(symbol, MIG_DEVICE, device, &at);
    if (answer != NVML_SUCCESS) return answer;
    NEED(out);
    sim_pci(at.card, out);
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetPciInfo, nvmlDevice_t device, nvmlPciInfo_t *out) { return pci(__func__, device, out); }
API(nvmlDeviceGetPciInfo_v2, nvmlDevice_t device, nvmlPciInfo_t *out) { return pci(__func__, device, out); }
API(nvmlDeviceGetPciInfo_v3, nvmlDevice_t device, nvmlPciInfo_t *out) { return pci(__func__, device, out); }

API(nvmlDeviceGetPciInfoExt, nvmlDevice_t device, nvmlPciInfoExt_t *out) {
    BEGIN_CARD(device);
    NEED_VERSION(out, nvmlPciInfoExt_v1_t, 1);
    out->domain = at.card->domain;
    out->bus = at.card->bus;
    out->device = at.card->slot;
    out->pciDeviceId = at.card->pci_device_id;
    out->pciSubSystemId = at.card->pci_subsystem_id;
    out->baseClass = 3;
    out->subClass = 2;
    snprintf(out->busId, sizeof out->busId, "%s", at.card->bus_id);
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetCudaComputeCapability, nvmlDevice_t device, int *major, int *minor) {
    BEGIN(device);
    NEED(major && minor);
    *major = (int)at.card->capability_major;
    *minor = (int)at.card->capability_minor;
    END(NVML_SUCCESS);
}

GETTER(nvmlDeviceGetMinorNumber, unsigned, minor)
GETTER(nvmlDeviceGetModuleId, unsigned, module)
GETTER(nvmlDeviceGetBoardId, unsigned, board)
GETTER(nvmlDeviceGetBrand, nvmlBrandType_t, brand)
GETTER(nvmlDeviceGetArchitecture, nvmlDeviceArchitecture_t, architecture)
GETTER(nvmlDeviceGetNumGpuCores, unsigned, cores)
GETTER(nvmlDeviceGetMemoryBusWidth, unsigned, bus_width)
GETTER(nvmlDeviceGetNumaNodeId, unsigned, own_numa) /* the card's own memory as a node, where it is one */

API(nvmlDeviceGetMultiGpuBoard, nvmlDevice_t device, unsigned *out) {
    BEGIN_CARD(device);
    END(sim_number(0, out));
}

API(nvmlDeviceGetGspFirmwareMode, nvmlDevice_t device, unsigned *enabled, unsigned *usual) {
    BEGIN_CARD(device);
    NEED(enabled && usual);
    *enabled = *usual = at.card->architecture >= NVML_DEVICE_ARCH_AMPERE;
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetGspFirmwareVersion, nvmlDevice_t device, char *version) {
    BEGIN_CARD(device);
    END(sim_copy(sim->driver_version, version, NVML_GSP_FIRMWARE_VERSION_BUF_SIZE));
}

API(nvmlDeviceGetVirtualizationMode, nvmlDevice_t device, nvmlGpuVirtualizationMode_t *mode) {
    BEGIN_CARD(device);
    NEED(mode);
    *mode = NVML_GPU_VIRTUALIZATION_MODE_NONE;
    END(NVML_SUCCESS);
}

static nvmlReturn_t off(const char *symbol, nvmlDevice_t device, nvmlEnableState_t *out) {
    struct target at;
    nvmlReturn_t answer = sim_begin(symbol, MIG_DEVICE, device, &at);
    if (answer != NVML_SUCCESS) return answer;
    NEED(out);
    *out = NVML_FEATURE_DISABLED;
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetDisplayMode, nvmlDevice_t device, nvmlEnableState_t *out) { return off(__func__, device, out); }
API(nvmlDeviceGetDisplayActive, nvmlDevice_t device, nvmlEnableState_t *out) { return off(__func__, device, out); }

/* ---- CPUs and memory nodes near it -------------------------------------------------------------------- */

static nvmlReturn_t cpus(const char *symbol, nvmlDevice_t device, unsigned words, unsigned long *out) {
    struct target at;
    nvmlReturn_t answer = sim_begin(symbol, MIG_DEVICE, device, &at);
    if (answer != NVML_SUCCESS) return answer;
    NEED(out && words);
    uint64_t any = 0;
    for (unsigned i = 0; i < 16; i++) any |= at.card->cpus[i];
    if (!any) END(NVML_ERROR_NOT_SUPPORTED);
    for (unsigned i = 0; i < words; i++) out[i] = i < 16 ? at.card->cpus[i] : 0;
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetCpuAffinity, nvmlDevice_t device, unsigned words, unsigned long *out) {
    return cpus(__func__, device, words, out);
}

API(nvmlDeviceGetCpuAffinityWithinScope, nvmlDevice_t device, unsigned words, unsigned long *out, nvmlAffinityScope_t scope) {
    (void)scope;
    return cpus(__func__, device, words, out);
}

API(nvmlDeviceGetMemoryAffinity, nvmlDevice_t device, unsigned words, unsigned long *out, nvmlAffinityScope_t scope) {
    BEGIN_CARD(device);
    (void)scope;
    NEED(out && words);
    if (at.card->numa == SIM_NA || at.card->numa / 64 >= words) END(NVML_ERROR_NOT_SUPPORTED);
    memset(out, 0, words * sizeof *out);
    out[at.card->numa / 64] = 1UL << (at.card->numa % 64);
    END(NVML_SUCCESS);
}

/* ---- memory ------------------------------------------------------------------------------------------- */

static uint64_t total(const struct target *at) {
    return at->gi ? at->card->profile[at->gi->profile].memory_mib << 20 : at->card->memory_total;
}

/* The first form counts what the driver keeps as used; the second shows it apart. */
API(nvmlDeviceGetMemoryInfo, nvmlDevice_t device, nvmlMemory_t *memory) {
    BEGIN(device);
    NEED(memory);
    if (at.card->unified) END(NVML_ERROR_NOT_SUPPORTED);
    uint64_t kept = at.gi ? 0 : at.card->memory_reserved;
    memory->total = total(&at);
    memory->used = sim_used(&at) + kept;
    memory->free = memory->total > memory->used ? memory->total - memory->used : 0;
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetMemoryInfo_v2, nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    BEGIN(device);
    NEED_VERSION(memory, nvmlMemory_v2_t, 2);
    if (at.card->unified) END(NVML_ERROR_NOT_SUPPORTED);
    memory->total = total(&at);
    memory->reserved = at.gi ? 0 : at.card->memory_reserved;
    memory->used = sim_used(&at);
    uint64_t gone = memory->reserved + memory->used;
    memory->free = memory->total > gone ? memory->total - gone : 0;
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetBAR1MemoryInfo, nvmlDevice_t device, nvmlBAR1Memory_t *memory) {
    BEGIN(device);
    NEED(memory);
    if (at.card->bar1_total == SIM_NA64) END(NVML_ERROR_NOT_SUPPORTED);
    *memory = (nvmlBAR1Memory_t){at.card->bar1_total, at.card->bar1_total - (1 << 20), 1 << 20};
    END(NVML_SUCCESS);
}

/* ---- modes -------------------------------------------------------------------------------------------- */

GETTER(nvmlDeviceGetComputeMode, nvmlComputeMode_t, compute_mode)
GETTER(nvmlDeviceGetPersistenceMode, nvmlEnableState_t, persistence)
GETTER(nvmlDeviceGetAccountingMode, nvmlEnableState_t, accounting)

API(nvmlDeviceSetComputeMode, nvmlDevice_t device, nvmlComputeMode_t mode) {
    BEGIN_CARD(device);
    if (!sim->privileged) END(NVML_ERROR_NO_PERMISSION);
    NEED(mode == NVML_COMPUTEMODE_DEFAULT || mode == NVML_COMPUTEMODE_PROHIBITED || mode == NVML_COMPUTEMODE_EXCLUSIVE_PROCESS);
    /* A card in MIG mode takes no exclusive process. */
    if (at.card->mig_current == 1 && mode == NVML_COMPUTEMODE_EXCLUSIVE_PROCESS) END(NVML_ERROR_NOT_SUPPORTED);
    at.card->compute_mode = mode;
    END(NVML_SUCCESS);
}

API(nvmlDeviceSetPersistenceMode, nvmlDevice_t device, nvmlEnableState_t mode) {
    BEGIN_CARD(device);
    if (!sim->privileged) END(NVML_ERROR_NO_PERMISSION);
    at.card->persistence = mode;
    END(NVML_SUCCESS);
}

API(nvmlDeviceSetAccountingMode, nvmlDevice_t device, nvmlEnableState_t mode) {
    BEGIN_CARD(device);
    if (!sim->privileged) END(NVML_ERROR_NO_PERMISSION);
    at.card->accounting = mode;
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetAPIRestriction, nvmlDevice_t device, nvmlRestrictedAPI_t kind, nvmlEnableState_t *restricted) {
    BEGIN_CARD(device);
    (void)kind;
    NEED(restricted);
    *restricted = NVML_FEATURE_ENABLED;
    END(NVML_SUCCESS);
}

/* Driver models are a matter of another operating system. */
API(nvmlDeviceGetDriverModel, nvmlDevice_t device, nvmlDriverModel_t *now, nvmlDriverModel_t *next) {
    BEGIN_CARD(device);
    (void)now, (void)next;
    END(NVML_ERROR_NOT_SUPPORTED);
}

API(nvmlDeviceGetDriverModel_v2, nvmlDevice_t device, nvmlDriverModel_t *now, nvmlDriverModel_t *next) {
    BEGIN_CARD(device);
    (void)now, (void)next;
    END(NVML_ERROR_NOT_SUPPORTED);
}

/* ---- how busy ----------------------------------------------------------------------------------------- */

API(nvmlDeviceGetUtilizationRates, nvmlDevice_t device, nvmlUtilization_t *out) {
    BEGIN_CARD(device);
    NEED(out);
    /* Neither the card nor its slices show utilisation in MIG mode. */
    if (at.card->gpu_util == SIM_NA || at.card->mig_current == 1) END(NVML_ERROR_NOT_SUPPORTED);
    *out = (nvmlUtilization_t){at.card->gpu_util, at.card->memory_util};
    END(NVML_SUCCESS);
}

static nvmlReturn_t codec(const char *symbol, nvmlDevice_t device, int encoder, unsigned *out, unsigned *period_us) {
    struct target at;
    nvmlReturn_t answer = sim_begin(symbol, MIG_DEVICE, device, &at);
    if (answer != NVML_SUCCESS) return answer;
    NEED(out && period_us);
    if (at.gi || at.card->mig_current == 1) END(NVML_ERROR_NOT_SUPPORTED);
    *period_us = 167000;
    END(sim_number(encoder ? at.card->encoder_util : at.card->decoder_util, out));
}

API(nvmlDeviceGetEncoderUtilization, nvmlDevice_t device, unsigned *out, unsigned *us) { return codec(__func__, device, 1, out, us); }
API(nvmlDeviceGetDecoderUtilization, nvmlDevice_t device, unsigned *out, unsigned *us) { return codec(__func__, device, 0, out, us); }

GETTER(nvmlDeviceGetPerformanceState, nvmlPstates_t, performance)
GETTER(nvmlDeviceGetPowerState, nvmlPstates_t, performance)

API(nvmlDeviceGetClockInfo, nvmlDevice_t device, nvmlClockType_t type, unsigned *out) {
    BEGIN_CARD(device);
    NEED(type < NVML_CLOCK_COUNT);
    END(sim_number(at.card->clocks[type], out));
}

API(nvmlDeviceGetMaxClockInfo, nvmlDevice_t device, nvmlClockType_t type, unsigned *out) {
    BEGIN_CARD(device);
    NEED(type < NVML_CLOCK_COUNT);
    END(sim_number(at.card->max_clocks[type], out));
}

API(nvmlDeviceGetApplicationsClock, nvmlDevice_t device, nvmlClockType_t type, unsigned *out) {
    BEGIN_CARD(device);
    NEED(type < NVML_CLOCK_COUNT);
    END(sim_number(at.card->max_clocks[type], out));
}

API(nvmlDeviceGetClock, nvmlDevice_t device, nvmlClockType_t type, nvmlClockId_t which, unsigned *out) {
    BEGIN_CARD(device);
    NEED(type < NVML_CLOCK_COUNT);
    END(sim_number(which == NVML_CLOCK_ID_CURRENT ? at.card->clocks[type] : at.card->max_clocks[type], out));
}

GETTER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, pcie_generation)
GETTER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, pcie_width)
GETTER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, pcie_max_generation)
GETTER(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned, pcie_max_generation)
GETTER(nvmlDeviceGetMaxPcieLinkWidth, unsigned, pcie_max_width)
GETTER(nvmlDeviceGetPcieReplayCounter, unsigned, pcie_replays)

API(nvmlDeviceGetPcieThroughput, nvmlDevice_t device, nvmlPcieUtilCounter_t counter, unsigned *out) {
    BEGIN_CARD(device);
    NEED(counter < NVML_PCIE_UTIL_COUNT);
    END(sim_number(counter == NVML_PCIE_UTIL_TX_BYTES ? at.card->pcie_tx_kbs : at.card->pcie_rx_kbs, out));
}
