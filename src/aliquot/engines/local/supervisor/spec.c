/* Reads what the launcher said, from a file `spec` or from memory. The text of the file lives as long as the process. */
#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *name;
    int resource;
} RESOURCES[] = {
    {"core", RLIMIT_CORE},     {"cpu", RLIMIT_CPU},         {"data", RLIMIT_DATA},
    {"fsize", RLIMIT_FSIZE},   {"memlock", RLIMIT_MEMLOCK}, {"nofile", RLIMIT_NOFILE},
    {"nproc", RLIMIT_NPROC},   {"rss", RLIMIT_RSS},         {"stack", RLIMIT_STACK},
    {"as", RLIMIT_AS},
};

static char *load(const char *path, size_t *size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0) return NULL;
    char *text = malloc((size_t)status.st_size + 1);
    size_t have = 0;
    while (text && have < (size_t)status.st_size) {
        ssize_t got = read(fd, text + have, (size_t)status.st_size - have);
        if (got <= 0) break;
        have += (size_t)got;
    }
    close(fd);
    if (text) text[have] = 0;
    *size = have;
    return text;
}

/* `name:soft:hard` */
static int add_limit(struct spec *spec, char *value) {
    char *soft = strchr(value, ':');
    char *hard = soft ? strchr(soft + 1, ':') : NULL;
    if (!hard || spec->limit_count == MAX_LIMITS) return -1;
    *soft++ = 0;
    *hard++ = 0;
    for (size_t at = 0; at < sizeof RESOURCES / sizeof *RESOURCES; at++) {
        if (strcmp(RESOURCES[at].name, value)) continue;
        struct limit *limit = &spec->limits[spec->limit_count++];
        limit->resource = RESOURCES[at].resource;
        limit->value.rlim_cur = strtoull(soft, NULL, 10);
        limit->value.rlim_max = strtoull(hard, NULL, 10);
        return 0;
    }
    return -1;
}

static int set_field(struct spec *spec, const char *key, char *value) {
    long long number = strtoll(value, NULL, 10);
    if (!strcmp(key, "cwd")) spec->cwd = value;
    else if (!strcmp(key, "out")) spec->out = value;
    else if (!strcmp(key, "err")) spec->err = value;
    else if (!strcmp(key, "out_dir")) spec->out_dir = value;
    else if (!strcmp(key, "keep_bytes")) spec->keep_bytes = number;
    else if (!strcmp(key, "keep_free")) spec->keep_free = number;
    else if (!strcmp(key, "keep_files")) spec->keep_files = (int)number;
    else if (!strcmp(key, "uid")) spec->uid = (uid_t)number, spec->has_user = 1;
    else if (!strcmp(key, "gid")) spec->gid = (gid_t)number;
    else if (!strcmp(key, "group") && spec->group_count < MAX_GROUPS)
        spec->groups[spec->group_count++] = (gid_t)number;
    else if (!strcmp(key, "umask")) spec->umask = (mode_t)number;
    else if (!strcmp(key, "warn_signal")) spec->warn_signal = (int)number;
    else if (!strcmp(key, "warn_ms")) spec->warn_ms = number;
    else if (!strcmp(key, "grace_ms")) spec->grace_ms = number;
    else if (!strcmp(key, "time_ms")) spec->time_ms = number;
    else if (!strcmp(key, "cgroup") && spec->cgroup_count < MAX_CGROUPS)
        spec->cgroups[spec->cgroup_count++] = value;
    else if (!strcmp(key, "kill_file")) spec->kill_file = value;
    else if (!strcmp(key, "into")) spec->into = value;
    else if (!strcmp(key, "own_group")) spec->own_group = value;
    else if (!strcmp(key, "limit")) return add_limit(spec, value);
    else return -1;
    return 0;
}

int read_spec(const char *path, struct spec *spec) {
    size_t size = 0;
    char *text = load(path, &size);
    if (!text) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -1;
    }
    return parse_spec(text, size, spec);
}

int parse_spec(char *text, size_t size, struct spec *spec) {
    size_t fields = 0, args = 0, vars = 0;
    for (size_t at = 0; at < size; at++) fields += text[at] == 0;
    spec->argv = calloc(fields + 1, sizeof *spec->argv);
    spec->envp = calloc(fields + 1, sizeof *spec->envp);
    if (!spec->argv || !spec->envp) return -1;
    for (char *field = text, *next; field < text + size; field = next) {
        next = field + strlen(field) + 1;
        char *value = strchr(field, '=');
        if (value) *value++ = 0;
        if (!value || (strcmp(field, "arg") && strcmp(field, "env") && set_field(spec, field, value) < 0)) {
            fprintf(stderr, "spec: field not known, too often or malformed: %s\n", field);
            return -1;
        }
        if (!strcmp(field, "arg")) spec->argv[args++] = value;
        if (!strcmp(field, "env")) spec->envp[vars++] = value;
    }
    if (!args || !spec->out) {
        fprintf(stderr, "spec: no command or no output file\n");
        return -1;
    }
    return 0;
}
