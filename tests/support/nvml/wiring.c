/* How cards are joined: PCIe ancestors, peer access, NVLinks, the fabric of switches, links to the CPU. */
#include "sim.h"

#include <stdio.h>
#include <string.h>

static int index_of(nvmlDevice_t device, unsigned *index) {
    for (unsigned i = 0; i < sim->devices; i++)
        if (sim_handle(WHOLE_CARD, i, NULL, NULL) == (void *)device) {
            *index = i;
            return 1;
        }
    return 0;
}

API(nvmlDeviceGetTopologyCommonAncestor, nvmlDevice_t one, nvmlDevice_t two, nvmlGpuTopologyLevel_t *level) {
    BEGIN_CARD(one);
    unsigned other;
    NEED(level && index_of(two, &other));
    if (sim->device[other].lost) END(NVML_ERROR_GPU_IS_LOST);
    if (sim->level[at.index][other] == 0xff) END(NVML_ERROR_NOT_SUPPORTED);
    *level = (nvmlGpuTopologyLevel_t)sim->level[at.index][other];
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetTopologyNearestGpus, nvmlDevice_t device, nvmlGpuTopologyLevel_t level, unsigned *count, nvmlDevice_t *found) {
    BEGIN_CARD(device);
    NEED(count);
    unsigned room = *count, near = 0;
    for (unsigned i = 0; i < sim->devices; i++) {
        if (i == at.index || sim->level[at.index][i] > (unsigned)level) continue;
        if (found && near < room) found[near] = sim_handle(WHOLE_CARD, i, NULL, NULL);
        near++;
    }
    *count = near;
    END(found && near > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS);
}

API(nvmlSystemGetTopologyGpuSet, unsigned cpu, unsigned *count, nvmlDevice_t *found) {
    ENTER;
    NEED(count && cpu < 1024);
    unsigned room = *count, near = 0;
    for (unsigned i = 0; i < sim->devices; i++) {
        if (!(sim->device[i].cpus[cpu / 64] >> (cpu % 64) & 1)) continue;
        if (found && near < room) found[near] = sim_handle(WHOLE_CARD, i, NULL, NULL);
        near++;
    }
    *count = near;
    END(found && near > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS);
}

static int linked(const struct sim_device *card, unsigned other) {
    for (unsigned i = 0; i < SIM_LINKS; i++)
        if (card->link[i].state == SIM_LINK_ACTIVE && (card->link[i].remote == other || card->link[i].remote == SIM_TO_SWITCH))
            return 1;
    return 0;
}

API(nvmlDeviceGetP2PStatus, nvmlDevice_t one, nvmlDevice_t two, nvmlGpuP2PCapsIndex_t what, nvmlGpuP2PStatus_t *status) {
    BEGIN_CARD(one);
    unsigned other;
    NEED(status && index_of(two, &other) && other != at.index);
    *status = (nvmlGpuP2PStatus_t)sim->peer[at.index][other];
    /* Cards in MIG mode reach no other card. */
    if (at.card->mig_current == 1 || sim->device[other].mig_current == 1) *status = NVML_P2P_STATUS_NOT_SUPPORTED;
    if (what == NVML_P2P_CAPS_INDEX_NVLINK && *status == NVML_P2P_STATUS_OK && !(linked(at.card, other) && linked(&sim->device[other], at.index)))
        *status = NVML_P2P_STATUS_NOT_SUPPORTED;
    END(NVML_SUCCESS);
}

/* ---- NVLinks ------------------------------------------------------------------------------------------ */

/* The link, or NULL with the answer to give: beyond the last one, or none on this card. */
static const struct sim_link *link_at(const struct target *at, unsigned number, nvmlReturn_t *answer) {
    *answer = NVML_ERROR_INVALID_ARGUMENT;
    if (number >= SIM_LINKS) return NULL;
    *answer = NVML_ERROR_NOT_SUPPORTED;
    const struct sim_link *link = &at->card->link[number];
    return link->state == SIM_LINK_ABSENT || at->gi ? NULL : link;
}

#define BEGIN_LINK(device, number)                         \
    BEGIN(device);                                         \
    nvmlReturn_t missing;                                  \
    const struct sim_link *link = link_at(&at, number, &missing); \
    if (!link) END(missing)

API(nvmlDeviceGetNvLinkState, nvmlDevice_t device, unsigned number, nvmlEnableState_t *active) {
    BEGIN_LINK(device, number);
    NEED(active);
    *active = link->state == SIM_LINK_ACTIVE ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetNvLinkVersion, nvmlDevice_t device, unsigned number, unsigned *version) {
    BEGIN_LINK(device, number);
    END(sim_number(link->version, version));
}

API(nvmlDeviceGetNvLinkCapability, nvmlDevice_t device, unsigned number, nvmlNvLinkCapability_t what, unsigned *out) {
    BEGIN_LINK(device, number);
    NEED(out && what < NVML_NVLINK_CAP_COUNT);
    *out = what == NVML_NVLINK_CAP_P2P_SUPPORTED || what == NVML_NVLINK_CAP_P2P_ATOMICS || what == NVML_NVLINK_CAP_VALID;
    END(NVML_SUCCESS);
}

static nvmlReturn_t remote(const char *symbol, nvmlDevice_t device, unsigned number, nvmlPciInfo_t *pci) {
    struct target at;
    nvmlReturn_t answer = sim_begin(symbol, MIG_DEVICE, device, &at);
    if (answer != NVML_SUCCESS) return answer;
    const struct sim_link *link = link_at(&at, number, &answer);
    if (!link) END(answer);
    NEED(pci);
    if (link->state != SIM_LINK_ACTIVE || link->remote == SIM_TO_UNKNOWN) END(NVML_ERROR_NOT_SUPPORTED);
    if (link->remote < sim->devices) {
        sim_pci(&sim->device[link->remote], pci);
        END(NVML_SUCCESS);
    }
    /* The switch chips: each link of a card goes to one of a few, the same for every card. */
    memset(pci, 0, sizeof *pci);
    pci->bus = 0xc0 + number % 6;
    pci->pciDeviceId = 0x22a310de;
    snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", pci->bus);
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "0000:%02X:00.0", pci->bus & 0xff);
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetNvLinkRemotePciInfo, nvmlDevice_t device, unsigned number, nvmlPciInfo_t *pci) {
    return remote(__func__, device, number, pci);
}

API(nvmlDeviceGetNvLinkRemotePciInfo_v2, nvmlDevice_t device, unsigned number, nvmlPciInfo_t *pci) {
    return remote(__func__, device, number, pci);
}

API(nvmlDeviceGetNvLinkRemoteDeviceType, nvmlDevice_t device, unsigned number, nvmlIntNvLinkDeviceType_t *type) {
    BEGIN_LINK(device, number);
    NEED(type);
    if (link->state != SIM_LINK_ACTIVE) END(NVML_ERROR_NOT_SUPPORTED);
    *type = link->remote == SIM_TO_SWITCH    ? NVML_NVLINK_DEVICE_TYPE_SWITCH
            : link->remote == SIM_TO_UNKNOWN ? NVML_NVLINK_DEVICE_TYPE_UNKNOWN
                                             : NVML_NVLINK_DEVICE_TYPE_GPU;
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetNvLinkErrorCounter, nvmlDevice_t device, unsigned number, nvmlNvLinkErrorCounter_t which, unsigned long long *out) {
    BEGIN_LINK(device, number);
    NEED(out && which < NVML_NVLINK_ERROR_COUNT);
    *out = link->errors[which];
    END(NVML_SUCCESS);
}

API(nvmlDeviceResetNvLinkErrorCounters, nvmlDevice_t device, unsigned number) {
    BEGIN_LINK(device, number);
    memset(at.card->link[number].errors, 0, sizeof link->errors);
    END(NVML_SUCCESS);
}

/* ---- the fabric, and links to the CPU ------------------------------------------------------------------ */

API(nvmlDeviceGetGpuFabricInfo, nvmlDevice_t device, nvmlGpuFabricInfo_t *out) {
    BEGIN_CARD(device);
    NEED(out);
    if (at.card->fabric_state == SIM_NA) END(NVML_ERROR_NOT_SUPPORTED);
    memcpy(out->clusterUuid, at.card->fabric_cluster, sizeof out->clusterUuid);
    out->status = (nvmlReturn_t)at.card->fabric_status;
    out->cliqueId = at.card->fabric_clique;
    out->state = (nvmlGpuFabricState_t)at.card->fabric_state;
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetGpuFabricInfoV, nvmlDevice_t device, nvmlGpuFabricInfoV_t *out) {
    BEGIN_CARD(device);
    NEED(out);
    int third = out->version == (unsigned)(sizeof(nvmlGpuFabricInfo_v3_t) | 3u << 24);
    if (!third && out->version != (unsigned)(sizeof(nvmlGpuFabricInfo_v2_t) | 2u << 24)) END(NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    if (at.card->fabric_state == SIM_NA) END(NVML_ERROR_NOT_SUPPORTED);
    memcpy(out->clusterUuid, at.card->fabric_cluster, sizeof out->clusterUuid);
    out->status = (nvmlReturn_t)at.card->fabric_status;
    out->cliqueId = at.card->fabric_clique;
    out->state = (nvmlGpuFabricState_t)at.card->fabric_state;
    out->healthMask = at.card->fabric_health;
    if (third) out->healthSummary = at.card->fabric_status ? NVML_GPU_FABRIC_HEALTH_SUMMARY_UNHEALTHY : NVML_GPU_FABRIC_HEALTH_SUMMARY_HEALTHY;
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetC2cModeInfoV, nvmlDevice_t device, nvmlC2cModeInfo_v1_t *out) {
    BEGIN_CARD(device);
    NEED(out);
    if (at.card->c2c == SIM_NA) END(NVML_ERROR_NOT_SUPPORTED);
    out->isC2cEnabled = at.card->c2c;
    END(NVML_SUCCESS);
}
