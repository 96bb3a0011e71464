/* Jobs of `true` through Slurm's own C library, and waiting for them, in one process: no program is started for
   a request. `submit COUNT`: each answered before the next. `wait COUNT`: until so many have ended since the
   controller began, and none is left. */

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEAST_POLL_US = 10000, MOST_POLL_US = 500000, US_PER_JOB = 2000 };

static void stop(void)
{
    fprintf(stderr, "%s\n", slurm_strerror(slurm_get_errno()));
    exit(1);
}

static void submit(void)
{
    static char name[] = "nothing", folder[] = "/tmp", null[] = "/dev/null", script[] = "#!/bin/sh\ntrue\n";
    static char path[] = "PATH=/usr/bin:/bin";
    char *variables[] = {path, NULL};
    job_desc_msg_t job;
    submit_response_msg_t *answer = NULL;

    slurm_init_job_desc_msg(&job);
    job.name = name;
    job.script = script;
    job.work_dir = folder;
    job.std_in = job.std_out = null;
    job.user_id = getuid();
    job.group_id = getgid();
    job.min_nodes = 1;
    job.environment = variables;
    job.env_size = 1;
    if (slurm_submit_batch_job(&job, &answer))
        stop();
    slurm_free_submit_response_response_msg(answer);
}

/* Jobs that ended since the controller began or, at midnight, began to count anew. */
static long count_ended(void)
{
    stats_info_request_msg_t question = {.command_id = STAT_COMMAND_GET};
    stats_info_response_msg_t *answer = NULL;

    if (slurm_get_statistics(&answer, &question))
        stop();
    return answer->jobs_completed; /* the library has no public way to free it */
}

static int is_any_left(void)
{
    job_info_msg_t *jobs = NULL;
    int left = 0;

    if (slurm_load_jobs(0, &jobs, SHOW_ALL))
        stop();
    for (uint32_t at = 0; at < jobs->record_count; at++) {
        uint32_t state = jobs->job_array[at].job_state;
        left |= (state & JOB_STATE_BASE) < JOB_COMPLETE || (state & JOB_COMPLETING);
    }
    slurm_free_job_info_msg(jobs);
    return left;
}

/* The controller's counters are asked, seldom while many are left: cheaper for it than a list of all jobs. */
static void wait_for(long count)
{
    long ended, before = 0;

    while ((ended = count_ended()) < count && ended >= before) {
        long pause = (count - ended) * US_PER_JOB;

        before = ended;
        usleep(pause < LEAST_POLL_US ? LEAST_POLL_US : pause > MOST_POLL_US ? MOST_POLL_US : pause);
    }
    while (is_any_left())
        usleep(LEAST_POLL_US);
}

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    slurm_init(NULL);
    if (strcmp(words[1], "wait") == 0)
        wait_for(atol(words[2]));
    else
        for (long left = atol(words[2]); left > 0; left--)
            submit();
    return 0;
}
