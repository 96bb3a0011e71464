/* The three records of an attempt: `start` before the command may run, `running` once it does, `exit` when
 * every process is gone. A record is written beside its place and renamed, so it is whole or absent; its last
 * line is `end`, so that one whose contents a power cut took is seen to be torn.
 *
 * `exit` is flushed to the disk only where no service took the news of it, which puts it on its own record at
 * once: until either is done only a power cut can lose it, which also ends every process it could be confused
 * with. */
#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int64_t now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static long long wall_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (long long)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static long long ms(struct timeval time) { return (long long)time.tv_sec * 1000 + time.tv_usec / 1000; }

static int place(const char *name, const char *text, int flush) {
    char beside[32];
    snprintf(beside, sizeof beside, "%s.new", name);
    int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) return -1;
    size_t size = strlen(text);
    int failed = write(fd, text, size) != (ssize_t)size || rename(beside, name) < 0;
    if (!failed && flush) {
        fsync(fd);
        int folder = open(".", O_RDONLY | O_CLOEXEC);
        if (folder >= 0) fsync(folder), close(folder);
    }
    close(fd);
    return failed ? -1 : 0;
}

int write_start(pid_t pid) {
    char boot[64] = "", text[512];
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t got = read(fd, boot, sizeof boot - 1);
        boot[got > 0 ? got : 0] = 0;
        boot[strcspn(boot, "\n")] = 0;
        close(fd);
    }
    snprintf(text, sizeof text,
             "pid %d\nticks %llu\nboot %s\nsupervisor %d\nsupervisor_ticks %llu\nat_ms %lld\nend\n", (int)pid,
             (unsigned long long)start_ticks(pid), boot, (int)getpid(),
             (unsigned long long)start_ticks(getpid()), wall_ms());
    return place("start", text, 0);
}

int write_running(void) { return place("running", "end\n", 0); }

void describe_exit(const struct ending *ending, char *text, size_t size) {
    snprintf(text, size,
             "how %s\ncode %d\nsignal %d\nreason %s\ntext %s\nwall_ms %lld\nuser_ms %lld\nsystem_ms %lld\n"
             "max_rss_kib %ld\nlost_bytes %lld\nat_ms %lld\nend\n",
             ending->how, ending->code, ending->signal, ending->reason, ending->text,
             (long long)ending->wall_ms, ms(ending->usage.ru_utime), ms(ending->usage.ru_stime),
             ending->usage.ru_maxrss, (long long)ending->lost_bytes, wall_ms());
}

int write_exit(const struct ending *ending, int flush) {
    char text[1024];
    describe_exit(ending, text, sizeof text);
    return place("exit", text, flush);
}
