/* The whole state of a simulated machine, in one file that every process maps.
 *
 * This header is the only definition of the layout: the C library includes it, and layout.py reads it and
 * makes the same structures for Python. So it keeps to a plain form: `#define NAME number`, `struct name {`
 * with one `type field;` or `type field[N];` a line, and fixed-width types.
 *
 * A number that the card does not report is SIM_NA (32 bits) or all ones (64 bits): the call then answers
 * NVML_ERROR_NOT_SUPPORTED, as a real driver does.
 */
#ifndef SIM_STATE_H
#define SIM_STATE_H

#include <stdint.h>

#define SIM_MAGIC 0x53494d4e564d4c32
#define SIM_NA 0xffffffff
#define SIM_NA64 0xffffffffffffffff
#define SIM_WHOLE_CARD 0xffffffff

#define SIM_DEVICES 20
#define SIM_LINKS 18
#define SIM_PROCESSES 128
#define SIM_PROFILES 12
#define SIM_PLACEMENTS 8
#define SIM_GIS 8
#define SIM_CIS 8
#define SIM_EVENTS 512
#define SIM_FAULTS 32

#define SIM_COMPUTE 1
#define SIM_GRAPHICS 2
#define SIM_MPS 3

#define SIM_LINK_ABSENT 0
#define SIM_LINK_ACTIVE 1
#define SIM_LINK_DOWN 2

#define SIM_TO_SWITCH 0x100
#define SIM_TO_UNKNOWN 0x101

#define SIM_MIG_AT_ONCE 0
#define SIM_MIG_NEEDS_RESET 1

struct sim_profile {
    char name[32];
    uint32_t id;
    uint32_t enumeration;
    uint32_t compute_slices;
    uint32_t size;
    uint64_t memory_mib;
    uint32_t sm_count;
    uint32_t copy_engines;
    uint32_t decoders;
    uint32_t encoders;
    uint32_t jpeg;
    uint32_t ofa;
    uint32_t max_instances;
    uint32_t media_extension;
    uint32_t placements;
    uint32_t starts[SIM_PLACEMENTS];
};

struct sim_ci {
    uint32_t live;
    uint32_t id;
    uint32_t profile;
    uint32_t start;
    uint32_t slices;
    uint64_t serial;
    char uuid[64];
};

struct sim_gi {
    uint32_t live;
    uint32_t id;
    uint32_t profile;
    uint32_t start;
    uint64_t serial;
    struct sim_ci ci[SIM_CIS];
};

struct sim_process {
    uint32_t pid;
    uint32_t kind;
    uint64_t memory;
    uint32_t gi;
    uint32_t ci;
    uint32_t sm_util;
    uint32_t memory_util;
    uint32_t encoder_util;
    uint32_t decoder_util;
    uint32_t follow;
    uint64_t sampled_us;
};

struct sim_link {
    uint32_t state;
    uint32_t remote;
    uint32_t version;
    uint32_t speed_mbps;
    uint64_t errors[8];
};

struct sim_device {
    char name[96];
    char uuid[96];
    char serial[32];
    char part_number[32];
    char bus_id[32];
    uint32_t domain;
    uint32_t bus;
    uint32_t slot;
    uint32_t pci_device_id;
    uint32_t pci_subsystem_id;
    uint32_t minor;
    uint32_t module;
    uint32_t board;
    uint32_t brand;
    uint32_t architecture;
    uint32_t capability_major;
    uint32_t capability_minor;
    uint32_t cores;
    uint32_t bus_width;
    uint32_t numa;
    uint32_t own_numa;
    uint64_t cpus[16];
    uint32_t lost;
    uint64_t memory_total;
    uint64_t memory_reserved;
    uint64_t memory_base_used;
    uint64_t bar1_total;
    uint32_t unified;
    uint32_t compute_mode;
    uint32_t persistence;
    uint32_t accounting;
    uint32_t gpu_util;
    uint32_t memory_util;
    uint32_t encoder_util;
    uint32_t decoder_util;
    uint32_t temperature;
    uint32_t memory_temperature;
    uint32_t shutdown_temperature;
    uint32_t slowdown_temperature;
    uint32_t max_temperature;
    uint32_t fan;
    uint32_t power_mw;
    uint32_t power_limit_mw;
    uint32_t power_default_mw;
    uint32_t power_least_mw;
    uint32_t power_most_mw;
    uint64_t energy_mj;
    uint32_t performance;
    uint32_t clocks[4];
    uint32_t max_clocks[4];
    uint64_t throttle;
    uint64_t violation_ns[12];
    uint32_t pcie_generation;
    uint32_t pcie_width;
    uint32_t pcie_max_generation;
    uint32_t pcie_max_width;
    uint32_t pcie_tx_kbs;
    uint32_t pcie_rx_kbs;
    uint32_t pcie_replays;
    uint32_t ecc_current;
    uint32_t ecc_pending;
    uint64_t ecc_corrected[2];
    uint64_t ecc_uncorrected[2];
    uint32_t retired_single;
    uint32_t retired_double;
    uint32_t retired_pending;
    uint32_t remapped_corrected;
    uint32_t remapped_uncorrected;
    uint32_t remap_pending;
    uint32_t remap_failed;
    uint32_t recovery_action;
    uint32_t fabric_state;
    uint32_t fabric_status;
    uint32_t fabric_clique;
    uint32_t fabric_health;
    uint8_t fabric_cluster[16];
    uint32_t c2c;
    uint32_t mig_current;
    uint32_t mig_pending;
    uint32_t mig_change;
    uint32_t mig_units;
    uint32_t mig_slices;
    uint32_t mig_rotation;
    uint32_t mig_salt;
    uint32_t profiles;
    struct sim_profile profile[SIM_PROFILES];
    struct sim_gi gi[SIM_GIS];
    struct sim_process process[SIM_PROCESSES];
    struct sim_link link[SIM_LINKS];
};

struct sim_event {
    uint32_t device;
    uint32_t gi;
    uint32_t ci;
    uint64_t type;
    uint64_t value;
};

struct sim_fault {
    char symbol[64];
    int32_t device;
    int32_t code;
    int32_t skip;
    int32_t left;
    uint32_t delay_ms;
    uint64_t hits;
};

struct sim_state {
    uint64_t magic;
    uint64_t size;
    char lock[64];
    uint32_t pulse;
    uint32_t init_error;
    char driver_version[80];
    char nvml_version[80];
    uint32_t cuda_version;
    uint32_t privileged;
    uint32_t devices;
    uint64_t calls;
    uint64_t serial;
    uint64_t posted;
    uint32_t faults;
    uint8_t level[SIM_DEVICES][SIM_DEVICES];
    uint8_t peer[SIM_DEVICES][SIM_DEVICES];
    struct sim_event event[SIM_EVENTS];
    struct sim_fault fault[SIM_FAULTS];
    struct sim_device device[SIM_DEVICES];
};

#endif
