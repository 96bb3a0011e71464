/* Copies what the job prints into files, the newest under its plain name, older ones as NAME.1, NAME.2, ...
 *
 * Files are opened as the job's user, so that a path given by the user can name nothing the user may not
 * write. A full disk loses output and is counted; it never blocks the job. What would leave less than
 * `keep_free` on the disk is lost in the same way, so that output alone never fills it for everyone else. */
#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { SMALL_DISK = 8 }; /* of a small one, this part is kept free at most */
enum { TURNS = 16 }; /* reads before the loop looks at signals and commands again */
static char buffer[65536];

static void as_user(const struct spec *spec) {
    if (!spec->has_user) return;
    setfsgid(spec->gid);
    setfsuid(spec->uid);
}

static void as_ourselves(const struct spec *spec) {
    if (!spec->has_user) return;
    setfsuid(geteuid());
    setfsgid(getegid());
}

static void make_folder(const struct spec *spec) {
    if (mkdir(spec->out_dir, 0750) == 0 && spec->has_user && geteuid() == 0)
        (void)!chown(spec->out_dir, spec->uid, spec->gid);
}

void put_off(struct stream *stream, const char *path) { stream->path = path; }

int open_output(struct stream *stream, const char *path, const struct spec *spec) {
    struct stat status;
    stream->path = path;
    if (spec->out_dir && path == spec->out) make_folder(spec);
    as_user(spec);
    int how = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    stream->file = open(path, how, 0666 & ~spec->umask);
    int error = errno;
    as_ourselves(spec);
    if (stream->file < 0) return error;
    stream->size = fstat(stream->file, &status) == 0 && S_ISREG(status.st_mode) ? status.st_size : -1;
    return 0;
}

static void rotate(struct stream *stream, const struct spec *spec) {
    char from[4096], to[4096];
    as_user(spec);
    for (int at = spec->keep_files - 1; at >= 1; at--) {
        snprintf(to, sizeof to, "%s.%d", stream->path, at);
        if (at > 1) snprintf(from, sizeof from, "%s.%d", stream->path, at - 1);
        else snprintf(from, sizeof from, "%s", stream->path);
        (void)!rename(from, to);
    }
    if (spec->keep_files <= 1) (void)!unlink(stream->path);
    as_ourselves(spec);
    close(stream->file);
    if (open_output(stream, stream->path, spec)) stream->file = -1;
}

/* Whether `size` bytes more would leave too little room on the disk of the file. */
static int is_scarce(const struct stream *stream, const struct spec *spec, ssize_t size) {
    struct statvfs disk;
    if (spec->keep_free <= 0 || stream->size < 0 || fstatvfs(stream->file, &disk)) return 0;
    int64_t unit = (int64_t)disk.f_frsize, keep = spec->keep_free;
    if (keep > (int64_t)disk.f_blocks * unit / SMALL_DISK) keep = (int64_t)disk.f_blocks * unit / SMALL_DISK;
    return (int64_t)disk.f_bavail * unit < keep + size;
}

static void put(struct stream *stream, const struct spec *spec, ssize_t size, int64_t *lost) {
    int full = spec->keep_bytes > 0 && stream->size > 0 && stream->size + size > spec->keep_bytes;
    if (full && stream->file >= 0) rotate(stream, spec);
    if (stream->file < 0) (void)open_output(stream, stream->path, spec);
    ssize_t done = 0;
    int scarce = stream->file >= 0 && is_scarce(stream, spec, size);
    while (done < size && stream->file >= 0 && !scarce) {
        ssize_t wrote = write(stream->file, buffer + done, (size_t)(size - done));
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) break;
        done += wrote;
    }
    if (stream->size >= 0) stream->size += done;
    *lost += size - done;
}

int pump(struct stream *stream, const struct spec *spec, int64_t *lost) {
    size_t piece = sizeof buffer;
    if (spec->keep_bytes > 0 && (int64_t)piece > spec->keep_bytes) piece = (size_t)spec->keep_bytes;
    for (int turn = 0; turn < TURNS && stream->from >= 0; turn++) {
        ssize_t got = read(stream->from, buffer, piece);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return 0; /* nothing more for now */
        if (got == 0) {
            close(stream->from);
            stream->from = -1;
            return 0;
        }
        put(stream, spec, got, lost);
    }
    return stream->from >= 0;
}
