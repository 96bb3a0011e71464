/* How well a card is: errors counted, rows remapped, heat, power, why it slows down; and fields by number. */
#include "sim.h"

#include <string.h>
#include <time.h>

/* ---- memory errors ------------------------------------------------------------------------------------ */

API(nvmlDeviceGetEccMode, nvmlDevice_t device, nvmlEnableState_t *now, nvmlEnableState_t *next) {
    BEGIN_CARD(device);
    NEED(now && next);
    if (at.card->ecc_current == SIM_NA) END(NVML_ERROR_NOT_SUPPORTED);
    *now = (nvmlEnableState_t)at.card->ecc_current;
    *next = (nvmlEnableState_t)at.card->ecc_pending;
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetDefaultEccMode, nvmlDevice_t device, nvmlEnableState_t *usual) {
    BEGIN_CARD(device);
    NEED(usual);
    if (at.card->ecc_current == SIM_NA) END(NVML_ERROR_NOT_SUPPORTED);
    *usual = NVML_FEATURE_ENABLED;
    END(NVML_SUCCESS);
}

API(nvmlDeviceSetEccMode, nvmlDevice_t device, nvmlEnableState_t mode) {
    BEGIN_CARD(device);
    if (!sim->privileged) END(NVML_ERROR_NO_PERMISSION);
    if (at.card->ecc_current == SIM_NA) END(NVML_ERROR_NOT_SUPPORTED);
    at.card->ecc_pending = mode;
    END(NVML_SUCCESS);
}

static uint64_t ecc(const struct sim_device *card, nvmlMemoryErrorType_t type, nvmlEccCounterType_t since) {
    return type == NVML_MEMORY_ERROR_TYPE_CORRECTED ? card->ecc_corrected[since] : card->ecc_uncorrected[since];
}

API(nvmlDeviceGetTotalEccErrors, nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t since, unsigned long long *out) {
    BEGIN_CARD(device);
    NEED(out && type < NVML_MEMORY_ERROR_TYPE_COUNT && since < NVML_ECC_COUNTER_TYPE_COUNT);
    if (at.card->ecc_current != 1) END(NVML_ERROR_NOT_SUPPORTED);
    *out = ecc(at.card, type, since);
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetMemoryErrorCounter, nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t since,
    nvmlMemoryLocation_t where, unsigned long long *out) {
    BEGIN_CARD(device);
    NEED(out && type < NVML_MEMORY_ERROR_TYPE_COUNT && since < NVML_ECC_COUNTER_TYPE_COUNT);
    if (at.card->ecc_current != 1) END(NVML_ERROR_NOT_SUPPORTED);
    *out = where == NVML_MEMORY_LOCATION_DRAM ? ecc(at.card, type, since) : 0;
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetDetailedEccErrors, nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t since, nvmlEccErrorCounts_t *out) {
    BEGIN_CARD(device);
    NEED(out && type < NVML_MEMORY_ERROR_TYPE_COUNT && since < NVML_ECC_COUNTER_TYPE_COUNT);
    if (at.card->ecc_current != 1) END(NVML_ERROR_NOT_SUPPORTED);
    *out = (nvmlEccErrorCounts_t){0, 0, ecc(at.card, type, since), 0};
    END(NVML_SUCCESS);
}

API(nvmlDeviceClearEccErrorCounts, nvmlDevice_t device, nvmlEccCounterType_t since) {
    BEGIN_CARD(device);
    NEED(since < NVML_ECC_COUNTER_TYPE_COUNT);
    if (!sim->privileged) END(NVML_ERROR_NO_PERMISSION);
    at.card->ecc_corrected[since] = at.card->ecc_uncorrected[since] = 0;
    END(NVML_SUCCESS);
}

/* ---- pages taken out of use (before Ampere) and rows remapped (since) ---------------------------------- */

static nvmlReturn_t pages(const char *symbol, nvmlDevice_t device, nvmlPageRetirementCause_t cause, unsigned *count,
                          unsigned long long *addresses, unsigned long long *times) {
    struct target at;
    nvmlReturn_t answer = sim_begin(symbol, MIG_DEVICE, device, &at);
    if (answer != NVML_SUCCESS) return answer;
    NEED(count);
    unsigned have = cause == NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR ? at.card->retired_double : at.card->retired_single;
    if (have == SIM_NA) END(NVML_ERROR_NOT_SUPPORTED);
    unsigned room = addresses ? *count : 0;
    for (unsigned i = 0; i < have && i < room; i++) {
        addresses[i] = 0x1000ULL * (i + 1);
        if (times) times[i] = 0;
    }
    *count = have;
    END(have > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS);
}

API(nvmlDeviceGetRetiredPages, nvmlDevice_t device, nvmlPageRetirementCause_t cause, unsigned *count, unsigned long long *addresses) {
    return pages(__func__, device, cause, count, addresses, NULL);
}

API(nvmlDeviceGetRetiredPages_v2, nvmlDevice_t device, nvmlPageRetirementCause_t cause, unsigned *count,
    unsigned long long *addresses, unsigned long long *times) {
    return pages(__func__, device, cause, count, addresses, times);
}

GETTER(nvmlDeviceGetRetiredPagesPendingStatus, nvmlEnableState_t, retired_pending)

API(nvmlDeviceGetRemappedRows, nvmlDevice_t device, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed) {
    BEGIN_CARD(device);
    NEED(corrected && uncorrected && pending && failed);
    /* Not while the card is cut. */
    if (at.card->remapped_corrected == SIM_NA || sim_mig_devices(at.card, NULL)) END(NVML_ERROR_NOT_SUPPORTED);
    *corrected = at.card->remapped_corrected;
    *uncorrected = at.card->remapped_uncorrected;
    *pending = at.card->remap_pending;
    *failed = at.card->remap_failed;
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetRowRemapperHistogram, nvmlDevice_t device, nvmlRowRemapperHistogramValues_t *out) {
    BEGIN_CARD(device);
    NEED(out);
    if (at.card->remapped_corrected == SIM_NA) END(NVML_ERROR_NOT_SUPPORTED);
    unsigned touched = at.card->remapped_uncorrected + at.card->remapped_corrected;
    *out = (nvmlRowRemapperHistogramValues_t){640 - touched, touched, 0, 0, 0};
    END(NVML_SUCCESS);
}

/* ---- heat, power, clocks held back --------------------------------------------------------------------- */

API(nvmlDeviceGetTemperature, nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned *out) {
    BEGIN_CARD(device);
    NEED(sensor == NVML_TEMPERATURE_GPU);
    END(sim_number(at.card->temperature, out));
}

API(nvmlDeviceGetTemperatureV, nvmlDevice_t device, nvmlTemperature_t *out) {
    BEGIN_CARD(device);
    NEED_VERSION(out, nvmlTemperature_v1_t, 1);
    if (at.card->temperature == SIM_NA) END(NVML_ERROR_NOT_SUPPORTED);
    out->temperature = (int)at.card->temperature;
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetTemperatureThreshold, nvmlDevice_t device, nvmlTemperatureThresholds_t which, unsigned *out) {
    BEGIN_CARD(device);
    switch (which) {
    case NVML_TEMPERATURE_THRESHOLD_SHUTDOWN: END(sim_number(at.card->shutdown_temperature, out));
    case NVML_TEMPERATURE_THRESHOLD_SLOWDOWN: END(sim_number(at.card->slowdown_temperature, out));
    case NVML_TEMPERATURE_THRESHOLD_GPU_MAX:
    case NVML_TEMPERATURE_THRESHOLD_MEM_MAX: END(sim_number(at.card->max_temperature, out));
    default: END(NVML_ERROR_NOT_SUPPORTED);
    }
}

API(nvmlDeviceGetMarginTemperature, nvmlDevice_t device, nvmlMarginTemperature_t *out) {
    BEGIN_CARD(device);
    NEED_VERSION(out, nvmlMarginTemperature_v1_t, 1);
    if (at.card->temperature == SIM_NA || at.card->max_temperature == SIM_NA) END(NVML_ERROR_NOT_SUPPORTED);
    out->marginTemperature = (int)at.card->max_temperature - (int)at.card->temperature;
    END(NVML_SUCCESS);
}

GETTER(nvmlDeviceGetFanSpeed, unsigned, fan)
GETTER(nvmlDeviceGetPowerUsage, unsigned, power_mw)
GETTER(nvmlDeviceGetPowerManagementLimit, unsigned, power_limit_mw)
GETTER(nvmlDeviceGetEnforcedPowerLimit, unsigned, power_limit_mw)
GETTER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned, power_default_mw)

API(nvmlDeviceGetNumFans, nvmlDevice_t device, unsigned *out) {
    BEGIN_CARD(device);
    END(sim_number(at.card->fan == SIM_NA ? 0 : 1, out));
}

API(nvmlDeviceGetPowerManagementMode, nvmlDevice_t device, nvmlEnableState_t *out) {
    BEGIN_CARD(device);
    NEED(out);
    *out = NVML_FEATURE_ENABLED;
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetPowerManagementLimitConstraints, nvmlDevice_t device, unsigned *least, unsigned *most) {
    BEGIN_CARD(device);
    NEED(least && most);
    if (at.card->power_least_mw == SIM_NA) END(NVML_ERROR_NOT_SUPPORTED);
    *least = at.card->power_least_mw;
    *most = at.card->power_most_mw;
    END(NVML_SUCCESS);
}

API(nvmlDeviceSetPowerManagementLimit, nvmlDevice_t device, unsigned limit) {
    BEGIN_CARD(device);
    if (!sim->privileged) END(NVML_ERROR_NO_PERMISSION);
    NEED(limit >= at.card->power_least_mw && limit <= at.card->power_most_mw);
    at.card->power_limit_mw = limit;
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetTotalEnergyConsumption, nvmlDevice_t device, unsigned long long *out) {
    BEGIN_CARD(device);
    NEED(out);
    if (at.card->energy_mj == SIM_NA64) END(NVML_ERROR_NOT_SUPPORTED);
    *out = at.card->energy_mj;
    END(NVML_SUCCESS);
}

static nvmlReturn_t reasons(const char *symbol, nvmlDevice_t device, int supported, unsigned long long *out) {
    struct target at;
    nvmlReturn_t answer = sim_begin(symbol, MIG_DEVICE, device, &at);
    if (answer != NVML_SUCCESS) return answer;
    NEED(out);
    if (at.gi) END(NVML_ERROR_NOT_SUPPORTED);
    *out = supported ? nvmlClocksThrottleReasonAll : at.card->throttle;
    END(NVML_SUCCESS);
}

API(nvmlDeviceGetCurrentClocksThrottleReasons, nvmlDevice_t d, unsigned long long *out) { return reasons(__func__, d, 0, out); }
API(nvmlDeviceGetCurrentClocksEventReasons, nvmlDevice_t d, unsigned long long *out) { return reasons(__func__, d, 0, out); }
API(nvmlDeviceGetSupportedClocksThrottleReasons, nvmlDevice_t d, unsigned long long *out) { return reasons(__func__, d, 1, out); }
API(nvmlDeviceGetSupportedClocksEventReasons, nvmlDevice_t d, unsigned long long *out) { return reasons(__func__, d, 1, out); }

API(nvmlDeviceGetViolationStatus, nvmlDevice_t device, nvmlPerfPolicyType_t which, nvmlViolationTime_t *out) {
    BEGIN_CARD(device);
    NEED(out && which < 12);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    out->referenceTime = (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000;
    out->violationTime = at.card->violation_ns[which];
    END(NVML_SUCCESS);
}

/* ---- fields by number ---------------------------------------------------------------------------------- */

static nvmlReturn_t put32(nvmlFieldValue_t *value, uint32_t number) {
    if (number == SIM_NA) return NVML_ERROR_NOT_SUPPORTED;
    value->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
    value->value.uiVal = number;
    return NVML_SUCCESS;
}

static nvmlReturn_t put64(nvmlFieldValue_t *value, uint64_t number) {
    if (number == SIM_NA64) return NVML_ERROR_NOT_SUPPORTED;
    value->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
    value->value.ullVal = number;
    return NVML_SUCCESS;
}

static unsigned link_count(const struct sim_device *card) {
    unsigned links = 0;
    for (unsigned i = 0; i < SIM_LINKS; i++) links += card->link[i].state != SIM_LINK_ABSENT;
    return links;
}

static nvmlReturn_t link_field(const struct sim_device *card, nvmlFieldValue_t *value) {
    if (value->scopeId >= SIM_LINKS) return NVML_ERROR_INVALID_ARGUMENT;
    const struct sim_link *link = &card->link[value->scopeId];
    if (link->state == SIM_LINK_ABSENT) return NVML_ERROR_NOT_SUPPORTED;
    switch (value->fieldId) {
    case NVML_FI_DEV_NVLINK_GET_SPEED: return put32(value, link->state == SIM_LINK_ACTIVE ? link->speed_mbps : 0);
    case NVML_FI_DEV_NVLINK_GET_STATE: return put32(value, link->state == SIM_LINK_ACTIVE);
    default: return put32(value, link->version);
    }
}

static nvmlReturn_t field(const struct sim_device *card, nvmlFieldValue_t *value) {
    const int has_ecc = card->ecc_current == 1, has_rows = card->remapped_corrected != SIM_NA && !sim_mig_devices(card, NULL);
    switch (value->fieldId) {
    case NVML_FI_DEV_ECC_CURRENT: return put32(value, card->ecc_current);
    case NVML_FI_DEV_ECC_PENDING: return put32(value, card->ecc_pending);
    case NVML_FI_DEV_ECC_SBE_VOL_TOTAL: return has_ecc ? put64(value, card->ecc_corrected[0]) : NVML_ERROR_NOT_SUPPORTED;
    case NVML_FI_DEV_ECC_DBE_VOL_TOTAL: return has_ecc ? put64(value, card->ecc_uncorrected[0]) : NVML_ERROR_NOT_SUPPORTED;
    case NVML_FI_DEV_ECC_SBE_AGG_TOTAL: return has_ecc ? put64(value, card->ecc_corrected[1]) : NVML_ERROR_NOT_SUPPORTED;
    case NVML_FI_DEV_ECC_DBE_AGG_TOTAL: return has_ecc ? put64(value, card->ecc_uncorrected[1]) : NVML_ERROR_NOT_SUPPORTED;
    case NVML_FI_DEV_RETIRED_SBE: return put32(value, card->retired_single);
    case NVML_FI_DEV_RETIRED_DBE: return put32(value, card->retired_double);
    case NVML_FI_DEV_RETIRED_PENDING: return put32(value, card->retired_pending);
    case NVML_FI_DEV_REMAPPED_COR: return has_rows ? put32(value, card->remapped_corrected) : NVML_ERROR_NOT_SUPPORTED;
    case NVML_FI_DEV_REMAPPED_UNC: return has_rows ? put32(value, card->remapped_uncorrected) : NVML_ERROR_NOT_SUPPORTED;
    case NVML_FI_DEV_REMAPPED_PENDING: return has_rows ? put32(value, card->remap_pending) : NVML_ERROR_NOT_SUPPORTED;
    case NVML_FI_DEV_REMAPPED_FAILURE: return has_rows ? put32(value, card->remap_failed) : NVML_ERROR_NOT_SUPPORTED;
    case NVML_FI_DEV_MEMORY_TEMP: return put32(value, card->memory_temperature);
    case NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION: return put64(value, card->energy_mj);
    case NVML_FI_DEV_NVLINK_LINK_COUNT: return link_count(card) ? put32(value, link_count(card)) : NVML_ERROR_NOT_SUPPORTED;
    case NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON: return link_count(card) ? put32(value, card->link[0].speed_mbps) : NVML_ERROR_NOT_SUPPORTED;
    case NVML_FI_DEV_NVLINK_GET_SPEED:
    case NVML_FI_DEV_NVLINK_GET_STATE:
    case NVML_FI_DEV_NVLINK_GET_VERSION: return link_field(card, value);
    case NVML_FI_DEV_C2C_LINK_COUNT: return put32(value, card->c2c);
    case NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED:
        return card->mig_current == SIM_NA ? NVML_ERROR_NOT_SUPPORTED : put32(value, card->mig_change == SIM_MIG_AT_ONCE);
    case NVML_FI_DEV_POWER_AVERAGE:
    case NVML_FI_DEV_POWER_INSTANT: return put32(value, card->power_mw);
    case NVML_FI_DEV_POWER_MIN_LIMIT: return put32(value, card->power_least_mw);
    case NVML_FI_DEV_POWER_MAX_LIMIT: return put32(value, card->power_most_mw);
    case NVML_FI_DEV_POWER_DEFAULT_LIMIT: return put32(value, card->power_default_mw);
    case NVML_FI_DEV_POWER_CURRENT_LIMIT: return put32(value, card->power_limit_mw);
    case NVML_FI_DEV_GET_GPU_RECOVERY_ACTION: return put32(value, card->recovery_action);
    default: return NVML_ERROR_NOT_SUPPORTED;
    }
}

API(nvmlDeviceGetFieldValues, nvmlDevice_t device, int count, nvmlFieldValue_t *values) {
    BEGIN_CARD(device);
    NEED(values && count > 0);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    for (int i = 0; i < count; i++) {
        values[i].timestamp = (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
        values[i].latencyUsec = 0;
        values[i].nvmlReturn = field(at.card, &values[i]);
    }
    END(NVML_SUCCESS);
}
