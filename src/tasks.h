/* SPDX-License-Identifier: MIT */
/* Runs many command lines in one process, for pnradar-archive: a GPU starts once, which takes
 * longer than most tasks. */
#ifndef PNR_TASKS_H
#define PNR_TASKS_H

#define PNR_TASKS_OPTION "--tasks"

/* Runs the tasks that stdin has, one after the other. A task is a line of JSON:
 *   {"words": ["-c", "station.conf", "echo.ci16"], "out": PATH, "err": PATH}
 * `run` gets the words as a command line of `program`, with stdout and stderr in the two files, and
 * returns the exit status. Its pointers stay valid until it returns. The answer is the line
 *   {"exit_status": STATUS}
 * on the stdout of this process. Returns 0 at the end of stdin, or if no task comes for a minute;
 * the status of a task that fails, since a GPU may be lost to this process; the exit status of
 * PNR_EUSAGE for a line that is no task. */
int pnr_tasks_run(char *program, int (*run)(int argc, char **argv));

#endif
