/* Runs one member of one attempt of a job and outlives the service. Forked by the nursery (`--nursery`), or
 * alone: aliquot-supervisor FOLDER, with a file `spec` in it.
 *
 * The attempt's folder gets the records of record.c. The process holds a lock on
 * FOLDER/lock for its whole life: whoever finds it locked knows that the attempt may still have processes,
 * and a second supervisor for the same attempt, however late it comes, finds the lock or a record, or the folder
 * gone from its place, and goes away. So an attempt is run at most once. News are sent as packets `SERIAL WHAT`, kept until there is room
 * for them and dropped once nobody is there; nobody needs to read them.
 *
 * Commands come through the fifo FOLDER/control, one a line: `signal N`, `stop REASON`, `kill REASON`,
 * `time MS`, `grace MS` (of the warning if there is one, else between TERM and KILL), `within MS` (neither
 * the warning nor the grace is longer than that, begun or not). Stopping: warning signal, a while, TERM, the grace time, KILL; repeated until nothing is left.
 * A job past its time gets its warning before the end of it, TERM at the end.
 *
 * If this process is killed, the kernel kills the command with it; whatever else the job had started is left
 * to the service, which finds it by cgroup or by its environment.
 *
 * Exit: 0 the attempt is over and recorded, 3 another supervisor has it, 4 it was run or voided before,
 * 5 it cannot be recorded, 6 it is over and recorded and nobody took the news. */
#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AGAIN_MS = 50 };      /* between two rounds of KILL */
enum { PATIENCE_MS = 2000 }; /* for a service too busy to take news */
enum stage { CALM, WARNED, ENDING, KILLING };

static struct spec spec = {.umask = 022, .grace_ms = 10000, .keep_files = 1};
static struct ending ending = {.how = "exited"};
static struct stream out = {.from = -1, .file = -1}, err = {.from = -1, .file = -1};
static enum stage stage = CALM;
static pid_t main_pid = -1;
static int main_is_over = 0, news = -1;
static uint64_t serial;
static int64_t began, due = -1, time_at = -1; /* `due`: the next stage; `time_at`: the end of its time */

/* News that found no room yet, oldest first. Few turns are there to tell, so few places do. */
static char untold[4][NEWS_SIZE];
static int untold_count = 0;

static void send_news(void) {
    int sent = 0;
    while (sent < untold_count) {
        ssize_t size = (ssize_t)strlen(untold[sent]);
        if (news >= 0 && send(news, untold[sent], (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
            if (errno == EINTR) continue;
            if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) break;
            news = -1; /* the service is gone; the next one reads the records */
        }
        sent++;
    }
    untold_count -= sent;
    memmove(untold[0], untold[sent], sizeof untold[0] * (size_t)untold_count);
}

static void tell(const char *what, const char *more) {
    if (news < 0 || untold_count == (int)(sizeof untold / sizeof *untold)) return;
    snprintf(untold[untold_count++], NEWS_SIZE, "%llu %s\n%s", (unsigned long long)serial, what, more);
    send_news();
}

static void give_reason(const char *reason) {
    if (!ending.reason[0]) snprintf(ending.reason, sizeof ending.reason, "%s", reason);
}

static void advance(enum stage next) {
    if (next <= stage) return;
    stage = next;
    if (next == WARNED) {
        signal_group(main_pid, spec.warn_signal);
        due = now_ms() + spec.warn_ms;
    } else if (next == ENDING) {
        signal_all(main_pid, SIGTERM, &spec);
        signal_all(main_pid, SIGCONT, &spec); /* a stopped process cannot obey */
        due = now_ms() + spec.grace_ms;
    } else {
        due = now_ms();
    }
}

static void stop(const char *reason) {
    give_reason(reason);
    if (stage == WARNED && due < 0) due = now_ms() + spec.warn_ms; /* warned of the end of its time */
    advance(spec.warn_signal && spec.warn_ms > 0 ? WARNED : ENDING);
}

static void keep_time(void) {
    int64_t now = now_ms();
    if (time_at >= 0 && !main_is_over) {
        int64_t warn = spec.warn_signal ? spec.warn_ms : 0;
        if (now >= time_at) give_reason("time-limit"), advance(ENDING);
        else if (warn && now >= time_at - warn && stage == CALM) {
            advance(WARNED);
            due = -1; /* TERM comes when its time is up */
        }
    }
    if (due < 0 || now < due) return;
    if (stage == WARNED) advance(ENDING);
    else if (stage == ENDING) advance(KILLING);
    if (stage == KILLING) {
        kill_all(main_pid, &spec);
        due = now + AGAIN_MS;
    }
}

static int wait_ms(void) {
    int64_t next = due, warn = spec.warn_signal ? spec.warn_ms : 0;
    if (time_at >= 0 && !main_is_over && stage < ENDING) {
        int64_t limit = stage == CALM ? time_at - warn : time_at;
        if (next < 0 || limit < next) next = limit;
    }
    if (next < 0) return -1;
    int64_t left = next - now_ms();
    return left < 0 ? 0 : left > 3600000 ? 3600000 : (int)left + 1;
}

/* The job's own patience is not for whoever harms others. */
static void hurry(int64_t most) {
    if (spec.warn_ms > most) spec.warn_ms = most;
    if (spec.grace_ms > most) spec.grace_ms = most;
    if (due > now_ms() + most) due = now_ms() + most;
}

static void obey(char *line) {
    char *value = strchr(line, ' ');
    if (!value) return;
    *value++ = 0;
    if (!strcmp(line, "signal")) signal_group(main_pid, atoi(value));
    else if (!strcmp(line, "stop")) stop(value);
    else if (!strcmp(line, "grace")) {
        if (stage >= ENDING) return;
        if (spec.warn_signal) spec.warn_ms = atoll(value);
        else spec.grace_ms = atoll(value);
    } else if (!strcmp(line, "within")) hurry(atoll(value));
    else if (!strcmp(line, "kill")) give_reason(value), advance(KILLING);
    else if (!strcmp(line, "time")) spec.time_ms = atoll(value), time_at = began + spec.time_ms;
}

static void read_commands(int control) {
    char text[4096];
    ssize_t got = read(control, text, sizeof text - 1); /* writers stay below PIPE_BUF, so lines are whole */
    if (got <= 0) return;
    text[got] = 0;
    for (char *mark, *line = strtok_r(text, "\n", &mark); line; line = strtok_r(NULL, "\n", &mark)) obey(line);
}

static int did_start(void) { return strcmp(ending.how, "refused") && strcmp(ending.how, "unrunnable"); }

/* 0 while a child is left. */
static int reap(void) {
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != main_pid) continue;
        main_is_over = 1;
        ending.wall_ms = now_ms() - began;
        if (!did_start()) continue;
        if (WIFSIGNALED(status)) ending.how = "signalled", ending.signal = WTERMSIG(status);
        else ending.code = WEXITSTATUS(status);
    }
    return pid < 0 && errno == ECHILD;
}

static void take_signals(int signals) {
    struct signalfd_siginfo got;
    while (read(signals, &got, sizeof got) == sizeof got) {
        int signal = (int)got.ssi_signo;
        if (signal == SIGTERM) stop("supervisor-stopped");
        else if (signal != SIGCHLD) signal_group(main_pid, signal);
    }
}

static void watch(int signals, int control) {
    int was_over = 0;
    for (;;) {
        struct pollfd fds[] = {
            {signals, POLLIN, 0},  {control, POLLIN, 0},
            {out.from, POLLIN, 0}, {err.from, POLLIN, 0},
            {untold_count ? news : -1, POLLOUT, 0}};
        keep_time();
        poll(fds, 5, wait_ms());
        if (fds[4].revents) send_news();
        if (fds[2].revents) pump(&out, &spec, &ending.lost_bytes);
        if (fds[3].revents) pump(&err, &spec, &ending.lost_bytes);
        if (fds[1].revents) read_commands(control);
        if (fds[0].revents) take_signals(signals);
        if (reap()) return;
        if (main_is_over && !was_over) {
            was_over = 1;
            tell("stopping", "");
            advance(ENDING);
        }
    }
}

/* --- the command ---------------------------------------------------------------------------------------- */

/* Whose fault it is decides whether another try elsewhere makes sense: the job's, or the host's. */
enum fault { JOB, HOST };

struct failure {
    enum fault fault;
    char what[96];
    int error;
};

static void fail(int to, enum fault fault, const char *what, const char *about) {
    struct failure failure = {.fault = fault, .error = errno};
    snprintf(failure.what, sizeof failure.what, "%s%s%s", what, about ? " " : "", about ? about : "");
    (void)!write(to, &failure, sizeof failure);
    _exit(127);
}

static void enter_cgroups(int to, int from) {
    for (int at = from; at < spec.cgroup_count; at++) {
        int fd = open(spec.cgroups[at], O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, "0", 1) != 1) fail(to, HOST, "cannot enter", spec.cgroups[at]);
        close(fd);
    }
}

static void become_user(int to) {
    if (!spec.has_user) return;
    if (setresgid(spec.gid, spec.gid, spec.gid) < 0) fail(to, HOST, "cannot become the job's group", NULL);
    if (setresuid(spec.uid, spec.uid, spec.uid) < 0) fail(to, HOST, "cannot become the job's user", NULL);
}

/* Like fork, with the child in its cgroup from the first. To enter one later makes the kernel wait until every
 * processor has passed through a quiet state, 8 ms and more on an idle machine. *`is_in`: whether it worked. */
static pid_t fork_into_group(int *is_in) {
    int folder = spec.into ? open(spec.into, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    *is_in = 1;
    if (folder >= 0) {
        struct clone_args how = {
            .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)folder};
        pid_t pid = (pid_t)syscall(SYS_clone3, &how, sizeof how);
        if (pid != 0) close(folder);
        if (pid >= 0) return pid;
    }
    *is_in = 0;
    return fork();
}

static void run_command(int go, int to, int out_end, int err_end, pid_t parent, int is_in) {
    sigset_t none;
    char byte;
    setsid();
    enter_cgroups(to, is_in);
    for (int at = 0; at < spec.limit_count; at++)
        if (prlimit(0, (__rlimit_resource_t)spec.limits[at].resource, &spec.limits[at].value, NULL) < 0)
            fail(to, HOST, "cannot set a limit", NULL);
    become_user(to);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* after the change of user, which clears it */
    if (getppid() != parent || read(go, &byte, 1) != 1) _exit(127);
    umask(spec.umask);
    if (spec.cwd && chdir(spec.cwd) < 0) fail(to, JOB, "cannot work in", spec.cwd);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0 || dup2(null, 0) < 0 || dup2(out_end, 1) < 0 || dup2(err_end, 2) < 0)
        fail(to, HOST, "cannot set up input and output", NULL);
    for (int number = 1; number < 32; number++)
        if (number != SIGKILL && number != SIGSTOP) signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    environ = spec.envp;
    execvpe(spec.argv[0], spec.argv, spec.envp);
    fail(to, JOB, "cannot run", spec.argv[0]);
}

static void refuse(enum fault fault, const char *what, int error) {
    ending.how = fault == JOB ? "unrunnable" : "refused";
    if (fault == JOB) ending.code = error == ENOENT ? 127 : 126; /* as a shell says it */
    snprintf(ending.text, sizeof ending.text, "%s: %s", what, strerror(error));
    for (char *at = ending.text; *at; at++)
        if (*at == '\n') *at = ' ';
}

static int make_pipe(int pair[2], struct stream *stream) {
    if (pipe2(pair, O_CLOEXEC) < 0) return -1;
    if (stream) {
        stream->from = pair[0];
        fcntl(pair[0], F_SETFL, O_NONBLOCK);
    }
    return 0;
}

/* 0 once the command runs; otherwise `ending` says why not. */
static int start_command(void) {
    int go[2], failed[2], out_pipe[2], err_pipe[2], error;
    if (spec.out_dir) put_off(&out, spec.out);
    else if ((error = open_output(&out, spec.out, &spec))) return refuse(JOB, spec.out, error), -1;
    if (spec.err && (error = open_output(&err, spec.err, &spec))) return refuse(JOB, spec.err, error), -1;
    if (make_pipe(go, NULL) < 0 || make_pipe(failed, NULL) < 0 || make_pipe(out_pipe, &out) < 0)
        return refuse(HOST, "pipe", errno), -1;
    if (spec.err && make_pipe(err_pipe, &err) < 0) return refuse(HOST, "pipe", errno), -1;
    if (spec.own_group && mkdir(spec.own_group, 0755) < 0 && errno != EEXIST)
        return refuse(HOST, spec.own_group, errno), -1;
    pid_t parent = getpid();
    int is_in;
    main_pid = fork_into_group(&is_in);
    if (main_pid < 0) return refuse(HOST, "fork", errno), -1;
    if (main_pid == 0) {
        close(go[1]);
        run_command(go[0], failed[1], out_pipe[1], spec.err ? err_pipe[1] : out_pipe[1], parent,
                    is_in);
    }
    close(go[0]), close(failed[1]), close(out_pipe[1]);
    if (spec.err) close(err_pipe[1]);
    began = now_ms();
    /* unrecorded, it must not run: closing `go` makes it leave */
    if (write_start(main_pid) < 0) refuse(HOST, "cannot record the start", errno);
    else (void)!write(go[1], "g", 1);
    close(go[1]);
    struct failure failure;
    ssize_t got = read(failed[0], &failure, sizeof failure);
    close(failed[0]);
    if (got == sizeof failure) refuse(failure.fault, failure.what, failure.error);
    return did_start() ? 0 : -1;
}

/* Whether the folder is still where it was. It is moved aside before the first of its files is taken away, so
 * that nobody can miss a record that was there a moment ago and take the attempt for one yet to run. */
static int is_in_place(const char *path) {
    struct stat here, there;
    return stat(".", &here) == 0 && stat(path, &there) == 0 && here.st_ino == there.st_ino &&
           here.st_dev == there.st_dev;
}

static int take_lock(const char *path) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = open("lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return UNRECORDED;
    if (fcntl(fd, F_SETLK, &whole) < 0) return HELD;
    if (access("void", F_OK) == 0 || access("start", F_OK) == 0 || access("exit", F_OK) == 0) return BEFORE;
    return is_in_place(path) ? SUPERVISED : BEFORE; /* asked last: the records were there until it was moved */
}

static int open_signals(void) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL); /* SIGPIPE too: blocked, and taken from the descriptor */
    sigdelset(&all, SIGPIPE);
    return signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* Whether the service has taken all there was to tell; it is given a while to make room. */
static int is_heard(void) {
    int64_t until = now_ms() + PATIENCE_MS;
    send_news();
    while (news >= 0 && untold_count && now_ms() < until) {
        struct pollfd room = {news, POLLOUT, 0};
        poll(&room, 1, (int)PATIENCE_MS);
        send_news();
    }
    return news >= 0 && !untold_count;
}

static int finish(void) {
    struct rusage usage;
    char text[1024];
    while (pump(&out, &spec, &ending.lost_bytes)) continue;
    while (pump(&err, &spec, &ending.lost_bytes)) continue;
    if (getrusage(RUSAGE_CHILDREN, &usage) == 0) ending.usage = usage;
    for (int turn = 0; spec.own_group && turn < 20 && rmdir(spec.own_group) < 0 && errno == EBUSY; turn++)
        usleep(1000); /* the kernel may take a moment to let go of the last process */
    while (write_exit(&ending, 0) < 0) { /* a full disk: the answer is worth waiting for */
        snprintf(text, sizeof text, "unrecorded %s", strerror(errno));
        tell(text, "");
        usleep(1000000);
    }
    describe_exit(&ending, text, sizeof text);
    tell("over", text);
    if (is_heard()) return SUPERVISED;
    (void)!write_exit(&ending, 1);
    return UNHEARD;
}

/* Nothing the service happened to have open may reach the job or be held open by us. */
static void close_others(unsigned from) {
    if (syscall(SYS_close_range, from, ~0U, 0) == 0) return;
    for (long fd = from, end = sysconf(_SC_OPEN_MAX); fd < end; fd++) close((int)fd); /* before Linux 5.9 */
}

int supervise(const char *path, char *text, size_t size, uint64_t number, int to) {
    serial = number;
    news = to;
    int signals = open_signals();
    int taken = take_lock(path);
    if (taken) return taken;
    if (mkfifo("control", 0600) < 0 && errno != EEXIST) return UNRECORDED;
    int control = open("control", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (control < 0 || signals < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) return UNRECORDED;
    if ((text ? parse_spec(text, size, &spec) : read_spec("spec", &spec)) < 0) refuse(HOST, "spec", EINVAL);
    /* the groups are for the job and for the files opened in its name; who is not root keeps its own */
    else if (spec.has_user && geteuid() == 0 && setgroups((size_t)spec.group_count, spec.groups) < 0)
        refuse(HOST, "cannot set groups", errno);
    else if (start_command() == 0) {
        (void)!write_running();
        tell("started", "");
        if (spec.time_ms > 0) time_at = began + spec.time_ms;
        watch(signals, control);
        return finish();
    }
    while (!reap()) kill_all(main_pid, &spec), usleep(1000);
    return finish();
}

int main(int count, char **words) {
    if (count < 2) return UNRECORDED;
    if (!strcmp(words[1], "--nursery") && count > 2) {
        close_others(5);
        return run_nursery(words[2], 3, 4);
    }
    char *path = realpath(words[1], NULL);
    if (!path || chdir(path) < 0) return UNRECORDED;
    close_others(3);
    int status = supervise(path, NULL, 0, 0, -1);
    return status == UNHEARD ? SUPERVISED : status;
}
