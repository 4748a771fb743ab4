/* SPDX-License-Identifier: MIT */
/* The worker: a process that runs the engine and the detection for a run in another process. */
#ifndef PNR_WORKER_H
#define PNR_WORKER_H

/* The first argument of a worker; its second one is the descriptor of the pnr_shared. */
#define PNR_WORKER_OPTION "--worker"

/* Or PNR_WORKER_OPTION PNR_WORKER_DEVICES ENGINE: writes a pnr_devices to standard output. */
#define PNR_WORKER_DEVICES "devices"

/* Call this first in main() of each program that sets pnr_pipeline_options.can_isolate. If the
 * arguments are those of a worker, runs it and ends the process. */
void pnr_worker_main(int argc, char **argv);

#endif
