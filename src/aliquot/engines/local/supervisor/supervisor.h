/* What the parts of the supervisor share. See supervisor.c for what it is. */
#ifndef ALIQUOT_SUPERVISOR_H
#define ALIQUOT_SUPERVISOR_H

#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

enum { MAX_GROUPS = 128, MAX_CGROUPS = 16, MAX_LIMITS = 24 };

struct limit {
    int resource;
    struct rlimit value;
};

/* The file `spec`: fields `key=value`, each ended by a zero byte. */
struct spec {
    char **argv;
    char **envp;
    const char *cwd;
    const char *out;
    const char *err; /* NULL: goes where `out` goes */
    int64_t keep_bytes; /* 0: never rotated */
    int keep_files;
    int has_user; /* 0: stay who we are */
    uid_t uid;
    gid_t gid;
    gid_t groups[MAX_GROUPS];
    int group_count;
    mode_t umask;
    int warn_signal; /* 0: none */
    int64_t warn_ms, grace_ms, time_ms; /* time_ms 0: no limit */
    const char *cgroups[MAX_CGROUPS]; /* cgroup.procs files to enter */
    int cgroup_count;
    const char *kill_file; /* cgroup.kill, or NULL */
    struct limit limits[MAX_LIMITS];
    int limit_count;
};

/* spec.c */
int read_spec(const char *path, struct spec *spec); /* 0, or -1 with a sentence on stderr */

/* output.c: one stream of the job on its way into files */
struct stream {
    int from; /* read end, -1 when closed */
    int file;
    int64_t size;
    const char *path;
};
int open_output(struct stream *stream, const char *path, const struct spec *spec); /* 0 or errno */
int pump(struct stream *stream, const struct spec *spec, int64_t *lost); /* what is there now; 1: maybe more */

/* tree.c: the processes of the job */
void signal_group(pid_t main_pid, int signal);                               /* its process group */
void signal_all(pid_t main_pid, int signal, const struct spec *spec);        /* every process it left */
void kill_all(pid_t main_pid, const struct spec *spec);
uint64_t start_ticks(pid_t pid); /* field 22 of /proc/PID/stat, 0 where unknown */

/* record.c */
struct ending {
    const char *how; /* exited, signalled, refused (by the host), unrunnable (as the job asks) */
    int code, signal;
    char reason[64]; /* who ended it: empty, or such as cancelled, time-limit */
    char text[256];
    int64_t wall_ms, lost_bytes;
    struct rusage usage;
};
int write_start(pid_t pid);
int write_running(void);
int write_exit(const struct ending *ending);

int64_t now_ms(void);
#endif
