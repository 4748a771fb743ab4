/* SPDX-License-Identifier: MIT */
/* The worker: a process with the engine and the detection of a run. The run itself is another
 * process. */
#ifndef PNR_WORKER_H
#define PNR_WORKER_H

/* The first argument of a worker. The second argument is the file descriptor of the memory that
 * begins with pnr_shared. */
#define PNR_WORKER_OPTION "--worker"

/* With the arguments PNR_WORKER_OPTION PNR_WORKER_DEVICES ENGINE, the process writes a pnr_devices
 * to standard output and ends. */
#define PNR_WORKER_DEVICES "devices"

/* Call this first in main() of each program that sets pnr_pipeline_options.can_isolate. If the
 * arguments are those of a worker, runs the worker and ends the process. */
void pnr_worker_main(int argc, char **argv);

#endif
