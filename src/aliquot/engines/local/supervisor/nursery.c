/* aliquot-supervisor --nursery LOCK: forks the supervisors, so that the service, which is large, need not.
 *
 * Descriptor 3 brings orders: a header, then a body. `S`: the attempt's folder, a zero byte, the fields of its
 * spec; the folder is made and a child becomes its supervisor. `D`: a folder that is needed no more; it is taken away. Descriptor 4
 * takes the news of all supervisors, and from here `SERIAL gone` for one that has ended without telling of an
 * end itself. When the other end of 3 is closed, the service is gone: this ends, supervisors do not notice.
 *
 * It keeps nothing that cannot be lost. It holds a lock on LOCK while it lives, so that the next service can
 * wait until no order of the last one is still on its way: what was begun then has its folder. */
#define _GNU_SOURCE
#include "supervisor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct header {
    uint32_t size; /* of the body */
    uint32_t kind;
    uint64_t serial;
};

struct child {
    pid_t pid; /* 0: gone, and yet to be told */
    uint64_t serial;
};

static struct child *children = NULL;
static size_t child_count = 0, child_room = 0;
static int untold = 0;

static struct child *add_child(void) {
    if (child_count == child_room) {
        size_t room = child_room ? 2 * child_room : 64;
        struct child *more = realloc(children, room * sizeof *children);
        if (!more) return NULL;
        children = more, child_room = room;
    }
    return &children[child_count++];
}

static void remove_child(size_t at) { children[at] = children[--child_count]; }

static int say_gone(int news, uint64_t serial) {
    char text[64];
    int size = snprintf(text, sizeof text, "%llu gone\n", (unsigned long long)serial);
    return send(news, text, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 || errno != EAGAIN;
}

static void say_untold(int news) {
    for (size_t at = child_count; at-- > 0 && untold;)
        if (!children[at].pid) {
            if (!say_gone(news, children[at].serial)) return;
            remove_child(at);
            untold--;
        }
}

static void reap(int news) {
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (size_t at = 0; at < child_count; at++) {
            if (children[at].pid != pid) continue;
            if (WIFEXITED(status) && WEXITSTATUS(status) == SUPERVISED) remove_child(at);
            else children[at].pid = 0, untold++;
            break;
        }
    say_untold(news);
}

/* Aside first: a supervisor that is late must not find a folder in its place without its records. */
static void clear_folder(const char *path) {
    char aside[PATH_MAX];
    int size = snprintf(aside, sizeof aside, "%s.gone", path);
    if (size >= (int)sizeof aside || rename(path, aside) < 0) return;
    int folder = open(aside, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *list = folder < 0 ? NULL : fdopendir(folder);
    struct dirent *entry;
    if (!list) return;
    while ((entry = readdir(list)))
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) unlinkat(folder, entry->d_name, 0);
    closedir(list);
    rmdir(aside);
}

/* Never returns. */
static void be_supervisor(char *body, size_t size, uint64_t serial, int news) {
    size_t after = strnlen(body, size) + 1;
    if (after > size || chdir(body) < 0) _exit(UNRECORDED); /* it may be gone: nothing is run then */
    setsid();
    _exit(supervise(body, body + after, size - after, serial, news));
}

static void obey(const struct header *order, char *body, int orders, int signals, int news) {
    if (order->kind == 'D') return clear_folder(body);
    struct child *child = add_child();
    if (!child) return; /* not told: the service sees it when it asks the folder */
    *child = (struct child){.serial = order->serial};
    /* before the fork, so that a folder once taken away stays away; one that is there is left to its records */
    pid_t pid = mkdir(body, 0700) < 0 && errno != EEXIST ? -1 : fork();
    if (pid == 0) {
        close(orders), close(signals);
        be_supervisor(body, order->size, order->serial, news);
    }
    if (pid > 0) child->pid = pid;
    else untold++;
}

/* Orders as they come; a body may be longer than what is there to read. */
static char *inbox = NULL;
static size_t have = 0, room = 0;

static int take_orders(int orders, int signals, int news) {
    if (room - have < 65536) {
        char *more = realloc(inbox, room + 65536 + have);
        if (!more) return -1;
        inbox = more, room += 65536 + have;
    }
    ssize_t got = recv(orders, inbox + have, room - have - 1, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (got <= 0) return -1;
    have += (size_t)got;
    size_t at = 0;
    struct header order;
    while (have - at >= sizeof order) {
        memcpy(&order, inbox + at, sizeof order);
        if (have - at - sizeof order < order.size) break;
        char *body = inbox + at + sizeof order, after = body[order.size];
        body[order.size] = 0; /* a body is text */
        obey(&order, body, orders, signals, news);
        body[order.size] = after;
        at += sizeof order + order.size;
    }
    memmove(inbox, inbox + at, have - at);
    have -= at;
    return 0;
}

static int hold(const char *path) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    return fd < 0 || fcntl(fd, F_SETLK, &whole) < 0 ? -1 : 0;
}

int run_nursery(const char *lock, int orders, int news) {
    if (hold(lock) < 0) return HELD;
    sigset_t own;
    sigemptyset(&own);
    sigaddset(&own, SIGCHLD);
    sigprocmask(SIG_BLOCK, &own, NULL);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    fcntl(orders, F_SETFD, FD_CLOEXEC);
    fcntl(news, F_SETFD, FD_CLOEXEC);
    int signals = signalfd(-1, &own, SFD_NONBLOCK | SFD_CLOEXEC);
    for (;;) {
        struct pollfd fds[] = {
            {signals, POLLIN, 0}, {orders, POLLIN, 0}, {untold ? news : -1, POLLOUT, 0}};
        if (poll(fds, 3, -1) < 0 && errno != EINTR) return UNRECORDED;
        struct signalfd_siginfo got;
        if (fds[0].revents) {
            while (read(signals, &got, sizeof got) == sizeof got) continue;
            reap(news);
        }
        if (fds[2].revents || untold) say_untold(news);
        if (fds[1].revents && take_orders(orders, signals, news) < 0) return SUPERVISED;
    }
}
