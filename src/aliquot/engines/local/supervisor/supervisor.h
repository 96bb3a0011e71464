/* What the parts of the supervisor share. See supervisor.c for what it is. */
#ifndef ALIQUOT_SUPERVISOR_H
#define ALIQUOT_SUPERVISOR_H

#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

enum { SUPERVISED = 0, HELD = 3, BEFORE = 4, UNRECORDED = 5, UNHEARD = 6 }; /* exit statuses */
enum { NEWS_SIZE = 1400 }; /* a piece of news, its terminator included */
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
    const char *out_dir; /* `out` is ours: made with this folder at the first byte, so a quiet job leaves nothing */
    int64_t keep_bytes; /* 0: never rotated */
    int keep_files;
    int64_t keep_free; /* bytes that output leaves free on its disk, or a part of a small one; 0: all may be used */
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
    const char *into; /* the folder of the first of them where it is of version 2: to be born in it is quicker */
    const char *kill_file; /* cgroup.kill, or NULL */
    const char *own_group; /* a cgroup without limits: made before it is entered, and removed at the end */
    struct limit limits[MAX_LIMITS];
    int limit_count;
};

/* spec.c */
int read_spec(const char *path, struct spec *spec); /* 0, or -1 with a sentence on stderr */
int parse_spec(char *text, size_t size, struct spec *spec); /* the same of what is read; keeps `text` */

/* output.c: one stream of the job on its way into files */
struct stream {
    int from; /* read end, -1 when closed */
    int file;
    int64_t size;
    const char *path;
};
int open_output(struct stream *stream, const char *path, const struct spec *spec); /* 0 or errno */
void put_off(struct stream *stream, const char *path); /* opened when there is something to write */
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
int write_exit(const struct ending *ending, int flush);
void describe_exit(const struct ending *ending, char *text, size_t size); /* what `exit` holds */

/* supervisor.c. Runs the attempt whose folder is the working folder, tells news in its name; exit status */
int supervise(const char *path, char *text, size_t size, uint64_t serial, int news);

/* nursery.c */
int run_nursery(const char *lock, int orders, int news);

int64_t now_ms(void);
#endif
