/* Reaches every process a job left: its process group, its cgroup, and what became our child when its parent
 * ended (we are the subreaper, so nothing the job starts can leave us by detaching). */
#define _GNU_SOURCE
#include "supervisor.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Everything after the name in /proc/PID/stat, or NULL. A name may hold spaces and brackets. */
static char *read_stat(pid_t pid, char *text, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return NULL;
    ssize_t got = read(fd, text, size - 1);
    close(fd);
    if (got <= 0) return NULL;
    text[got] = 0;
    char *end = strrchr(text, ')');
    return end ? end + 2 : NULL;
}

uint64_t start_ticks(pid_t pid) {
    char text[1024], *field = read_stat(pid, text, sizeof text);
    for (int at = 3; field && at < 22; at++) {
        field = strchr(field, ' ');
        if (field) field++;
    }
    return field ? strtoull(field, NULL, 10) : 0;
}

void signal_group(pid_t main_pid, int signal) {
    if (main_pid > 0) kill(-main_pid, signal);
}

static int signal_cgroup(const char *procs, int signal) {
    FILE *file = fopen(procs, "re");
    int pid;
    if (!file) return -1;
    while (fscanf(file, "%d", &pid) == 1)
        if (pid > 0 && pid != getpid()) kill(pid, signal);
    fclose(file);
    return 0;
}

/* Our children outside the main process group. */
static void signal_strays(pid_t main_pid, int signal) {
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    if (!folder) return;
    while ((entry = readdir(folder))) {
        char text[1024], state;
        int parent, group;
        if (!isdigit((unsigned char)entry->d_name[0])) continue;
        pid_t pid = (pid_t)atoi(entry->d_name);
        char *rest = read_stat(pid, text, sizeof text);
        if (!rest || sscanf(rest, "%c %d %d", &state, &parent, &group) != 3) continue;
        if (parent == getpid() && group != main_pid && state != 'Z') kill(pid, signal);
    }
    closedir(folder);
}

void signal_all(pid_t main_pid, int signal, const struct spec *spec) {
    if (spec->cgroup_count && signal_cgroup(spec->cgroups[0], signal) == 0) return;
    signal_group(main_pid, signal);
    signal_strays(main_pid, signal);
}

void kill_all(pid_t main_pid, const struct spec *spec) {
    if (spec->kill_file) {
        int fd = open(spec->kill_file, O_WRONLY | O_CLOEXEC);
        if (fd >= 0) {
            (void)!write(fd, "1", 1);
            close(fd);
        }
    }
    if (spec->cgroup_count) signal_cgroup(spec->cgroups[0], SIGKILL);
    signal_group(main_pid, SIGKILL);
    signal_strays(main_pid, SIGKILL);
}
