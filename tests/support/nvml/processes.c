/* Who runs on a card. The same list in three forms of different structures, as drivers of three ages had it. */
#include "sim.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* A row that follows a real process is gone with it; a zombie has given its context back. */
int sim_alive(const struct sim_process *process) {
    if (!process->pid) return 0;
    if (!process->follow) return 1;
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%u/stat", process->pid);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    const char *end = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    fclose(file);
    return end && end[1] == ' ' && end[2] != 'Z' && end[2] != 'X';
}

static int concerns(const struct sim_process *process, const struct target *at) {
    if (!sim_alive(process)) return 0;
    if (!at->gi) return 1;
    return process->gi == at->gi->id && (!at->ci || process->ci == at->ci->id);
}

/* Compute instances of one GPU instance share its memory, so all of them show all of it. */
uint64_t sim_used(const struct target *at) {
    uint64_t used = at->gi ? 0 : at->card->memory_base_used;
    for (unsigned i = 0; i < SIM_PROCESSES; i++) {
        const struct sim_process *process = &at->card->process[i];
        if (process->memory == SIM_NA64 || !sim_alive(process)) continue;
        if (!at->gi || process->gi == at->gi->id) used += process->memory;
    }
    return used;
}

/* Where MPS serves a card, the driver lists its clients among the compute processes too. */
static int listed(uint32_t kind, uint32_t wanted) {
    return kind == wanted || (kind == SIM_MPS && wanted == SIM_COMPUTE);
}

static nvmlReturn_t list(const char *symbol, nvmlDevice_t device, uint32_t kind, unsigned *count, void *rows, int form) {
    struct target at;
    nvmlReturn_t answer = sim_begin(symbol, MIG_DEVICE, device, &at);
    if (answer != NVML_SUCCESS) return answer;
    NEED(count && (rows || !*count));
    unsigned room = *count, found = 0;
    for (unsigned i = 0; i < SIM_PROCESSES; i++) {
        const struct sim_process *process = &at.card->process[i];
        if (!listed(process->kind, kind) || !concerns(process, &at)) continue;
        if (found < room && form == 1)
            ((nvmlProcessInfo_v1_t *)rows)[found] = (nvmlProcessInfo_v1_t){process->pid, process->memory};
        else if (found < room)
            ((nvmlProcessInfo_t *)rows)[found] = (nvmlProcessInfo_t){process->pid, process->memory, process->gi, process->ci};
        found++;
    }
    *count = found;
    END(found > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS);
}

#define LISTS(name, kind)                                                                                   \
    API(name, nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v1_t *rows) {                           \
        return list(__func__, device, kind, count, rows, 1);                                                \
    }                                                                                                       \
    API(name##_v2, nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v2_t *rows) {                      \
        return list(__func__, device, kind, count, rows, 2);                                                \
    }                                                                                                       \
    API(name##_v3, nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *rows) {                         \
        return list(__func__, device, kind, count, rows, 3);                                                \
    }

LISTS(nvmlDeviceGetComputeRunningProcesses, SIM_COMPUTE)
LISTS(nvmlDeviceGetGraphicsRunningProcesses, SIM_GRAPHICS)
LISTS(nvmlDeviceGetMPSComputeRunningProcesses, SIM_MPS)

API(nvmlDeviceGetRunningProcessDetailList, nvmlDevice_t device, nvmlProcessDetailList_t *out) {
    BEGIN(device);
    NEED_VERSION(out, nvmlProcessDetailList_v1_t, 1);
    NEED(out->procArray || !out->numProcArrayEntries);
    const uint32_t kinds[] = {SIM_COMPUTE, SIM_GRAPHICS, SIM_MPS};
    NEED(out->mode < 3);
    unsigned room = out->numProcArrayEntries, found = 0;
    for (unsigned i = 0; i < SIM_PROCESSES; i++) {
        const struct sim_process *process = &at.card->process[i];
        if (!listed(process->kind, kinds[out->mode]) || !concerns(process, &at)) continue;
        if (found < room)
            out->procArray[found] = (nvmlProcessDetail_v1_t){process->pid, process->memory, process->gi, process->ci, 0};
        found++;
    }
    out->numProcArrayEntries = found;
    END(found > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS);
}

static uint64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Samples newer than `after`. A row without a time of its own has a fresh one at every call. */
API(nvmlDeviceGetProcessUtilization, nvmlDevice_t device, nvmlProcessUtilizationSample_t *rows, unsigned *count, unsigned long long after) {
    BEGIN_CARD(device);
    NEED(count);
    if (at.card->mig_current == 1) END(NVML_ERROR_NOT_SUPPORTED);
    unsigned room = rows ? *count : 0, found = 0;
    for (unsigned i = 0; i < SIM_PROCESSES; i++) {
        const struct sim_process *process = &at.card->process[i];
        if (!sim_alive(process) || process->sm_util == SIM_NA) continue;
        uint64_t sampled = process->sampled_us ? process->sampled_us : now_us();
        if (sampled <= after) continue;
        if (found < room)
            rows[found] = (nvmlProcessUtilizationSample_t){process->pid, sampled, process->sm_util, process->memory_util,
                                                          process->encoder_util, process->decoder_util};
        found++;
    }
    *count = found;
    if (!found) END(NVML_ERROR_NOT_FOUND);
    END(found > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS);
}

API(nvmlDeviceGetProcessesUtilizationInfo, nvmlDevice_t device, nvmlProcessesUtilizationInfo_t *out) {
    BEGIN_CARD(device);
    NEED_VERSION(out, nvmlProcessesUtilizationInfo_v1_t, 1);
    if (at.card->mig_current == 1) END(NVML_ERROR_NOT_SUPPORTED);
    unsigned room = out->procUtilArray ? out->processSamplesCount : 0, found = 0;
    for (unsigned i = 0; i < SIM_PROCESSES; i++) {
        const struct sim_process *process = &at.card->process[i];
        if (!sim_alive(process) || process->sm_util == SIM_NA) continue;
        uint64_t sampled = process->sampled_us ? process->sampled_us : now_us();
        if (sampled <= out->lastSeenTimeStamp) continue;
        if (found < room)
            out->procUtilArray[found] = (nvmlProcessUtilizationInfo_v1_t){
                sampled, process->pid, process->sm_util, process->memory_util, process->encoder_util, process->decoder_util, 0, 0};
        found++;
    }
    out->processSamplesCount = found;
    if (!found) END(NVML_ERROR_NOT_FOUND);
    END(found > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS);
}
