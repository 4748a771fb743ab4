# SPDX-License-Identifier: MIT
"""The workers: threads of this program, the workers of a running scheduler, or jobs of Slurm."""
import logging
import os
import shutil
import socket
import subprocess
import time
import warnings

from words import EXIT_UNAVAILABLE, Refusal, say

ATTEMPTS = 3  # most attempts for each task
TOGETHER = 2  # tasks on a GPU: one starts while the other works
NOWHERE = "127.0.0.1:0"  # Dask always has an HTTP server: here it has no pages
# Dask samples the stacks of its threads 100 times a second, and wakes up for other statistics. This takes 3 % of
# a core, and only the dashboard shows the results.
QUIET = {"distributed.worker.profile.enabled": False,
         "distributed.admin.tick.interval": "1s",
         "distributed.admin.system-monitor.interval": "10s",
         "distributed.scheduler.work-stealing-interval": "1s",
         "distributed.scheduler.active-memory-manager.start": False,
         "distributed.scheduler.http.routes": [],
         "distributed.worker.http.routes": []}


def say_dashboard(host, port):
    """Prints the address of the dashboard. Without bokeh, Dask has only plain pages."""
    try:
        import distributed.dashboard.scheduler  # noqa: F401
        say(f"dashboard: http://{host}:{port}/status")
    except ImportError:
        from distributed.versions import MAX_BOKEH_VERSION, MIN_BOKEH_VERSION
        say(f"dashboard: http://{host}:{port}/info/main/workers.html; its graphs need bokeh "
            f"{MIN_BOKEH_VERSION} to {MAX_BOKEH_VERSION} (python3-bokeh, or pip install 'bokeh<3')")


class Cluster:
    """A client of Dask, and the scheduler or job that this program started for it."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.resources = {"GPU": 1} if options.gpu else {"CORES": options.cores}  # of a worker
        self.n_threads = TOGETHER if options.gpu else 1
        self.cluster = self.client = self.job = None
        self.security, self.is_awaited = None, False
        self.known, self.asked = [], -1

    def open(self):
        options = self.options
        try:
            import dask
            dask.config.set({"logging": {"distributed": "warning"},  # the import reads this
                             "distributed.admin.log-format": "pnradar-archive: dask: %(message)s",
                             "distributed.scheduler.allowed-failures": ATTEMPTS,
                             "distributed.comm.retry.count": 2,
                             **({} if options.dashboard else QUIET)})
            import distributed
        except ImportError as error:
            raise Refusal(EXIT_UNAVAILABLE, f"{error}: install python3-distributed") from error
        self.dask = distributed
        address = options.cluster
        if address == "local":
            address = self.open_local()
        elif address == "slurm":
            address = self.open_slurm()
        self.address = address
        self.connect()
        return self

    def resources_of(self, n_attempts):
        """Returns the resources of a task. Two tasks may need more memory of a GPU than it has, so a task that has failed
        has the GPU for itself."""
        return {name: n if n_attempts > 0 else n / self.n_threads for name, n in self.resources.items()}

    def n_workers(self):
        if self.options.workers:
            return self.options.workers
        return max(1, len(os.sched_getaffinity(0)) // self.options.cores)

    def start(self, **where):
        """Starts a scheduler in this process."""
        dashboard = self.options.dashboard
        worker = {"cls": self.dask.Worker, "options": {
            "nthreads": self.n_threads, "memory_limit": 0, "resources": self.resources,
            "dashboard": False, "dashboard_address": NOWHERE, **where}}
        n_workers = 0 if self.security else self.n_workers()
        with warnings.catch_warnings():  # the port may be in use: the line below prints the other port
            warnings.simplefilter("ignore")
            cluster = self.dask.SpecCluster(
                scheduler={"cls": self.dask.Scheduler, "options": {
                    "dashboard": dashboard is not None, "dashboard_address": dashboard or NOWHERE,
                    "security": self.security, **where}},
                workers={i: worker for i in range(n_workers)},
                security=self.security, silence_logs=logging.WARN)
        if dashboard:
            say_dashboard(dashboard.rsplit(":", 1)[0], cluster.scheduler.http_server.port)
        return cluster

    def open_local(self):
        """Starts the workers as threads of this process, because each task is a separate process."""
        self.cluster = self.start(protocol="inproc://")
        return self.cluster

    def open_slurm(self):
        """Starts a scheduler in this process, with new keys, and an array job of workers for it."""
        if shutil.which("sbatch") is None:
            raise Refusal(EXIT_UNAVAILABLE, "--cluster slurm: there is no sbatch: install slurm-client")
        self.security = self.dask.security.Security.temporary()
        host = os.environ.get("PNR_ARCHIVE_HOST", socket.gethostname())
        self.cluster = self.start(protocol="tls://", host=host, port=0)
        self.job = self.submit(self.cluster.scheduler_address)
        say(f"job {self.job} of Slurm: {self.n_workers()} workers for {self.cluster.scheduler_address}")
        return self.cluster

    def submit(self, address):
        """Writes and submits the job. Returns the number of the job."""
        secret = os.path.join(self.folder, "keys")
        os.makedirs(secret, mode=0o700, exist_ok=True)
        pems = {"CA_FILE": self.security.tls_ca_file, "WORKER__CERT": self.security.tls_worker_cert,
                "WORKER__KEY": self.security.tls_worker_key}
        lines = ["#!/bin/sh", "#SBATCH --job-name=pnradar-archive", "#SBATCH --requeue",
                 f"#SBATCH --array=1-{self.n_workers()}",
                 f"#SBATCH --cpus-per-task={self.options.cores}",
                 f"#SBATCH --output={self.folder}/slurm-%A_%a.log"]
        lines += ["#SBATCH --gpus-per-task=1"] if self.options.gpu else []
        for name, pem in pems.items():
            path = os.path.join(secret, name)
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w",
                      encoding="ascii") as file:
                file.write(pem)
            lines.append(f"export DASK_DISTRIBUTED__COMM__TLS__{name}='{path}'")
        lines += [f"export DASK_{key.upper().replace('.', '__').replace('-', '_')}={value!r}"
                  for key, value in QUIET.items()]
        has = ",".join(f"{name}={n}" for name, n in self.resources.items())
        lines.append(f"exec /usr/bin/python3 -m distributed.cli.dask_worker {address} --nthreads {self.n_threads} "
                     f"--no-dashboard --dashboard-address {NOWHERE} --no-nanny --memory-limit 0 --resources {has} "
                     f"--death-timeout {self.options.patience} "
                     '--local-directory "${TMPDIR:-/tmp}"')
        script = os.path.join(self.folder, "slurm.sh")
        with open(script, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        run = subprocess.run(["sbatch", "--parsable", script], capture_output=True, text=True,
                             check=False)
        if run.returncode != 0:
            raise Refusal(EXIT_UNAVAILABLE, f"sbatch: {run.stderr.strip()}")
        return run.stdout.strip().split(";")[0]

    def connect(self):
        """Connects to the scheduler. Tries for options.patience seconds, because a scheduler may restart."""
        end = time.monotonic() + self.options.patience
        while True:
            try:
                self.client = self.dask.Client(self.address, timeout=10, set_as_default=False,
                                               **({"security": self.security} if self.security else {}))
                return
            except (OSError, TimeoutError) as error:
                if time.monotonic() > end:
                    raise Refusal(EXIT_UNAVAILABLE,
                                  f"no scheduler at {self.address} within "
                                  f"{self.options.patience} s: {error}") from error
                if self.client is None and not self.is_awaited:
                    say(f"waits for a scheduler at {self.address}")
                    self.is_awaited = True
                time.sleep(1)

    def is_connected(self):
        return self.client.status == "running"

    def workers(self):
        """Returns the addresses of the workers that have the resource of a task. Asks at most once a second."""
        if time.monotonic() - self.asked > 1:
            try:
                known = self.client.scheduler_info()["workers"]
            except (KeyError, OSError):
                known = {}
            self.known = [address for address, worker in known.items()
                          if all(worker["resources"].get(n, 0) >= k for n, k in self.resources.items())]
            self.asked = time.monotonic()
        return self.known

    def close(self, is_stopped):
        """Ends the job and the scheduler. If the run is stopped, the end of this process ends them."""
        if self.job is not None:
            subprocess.run(["scancel", self.job], check=False)
        if self.client is not None:
            self.client.close(timeout=5)
        if self.cluster is not None and not is_stopped:
            self.cluster.close(timeout=5)
        shutil.rmtree(os.path.join(self.folder, "keys"), ignore_errors=True)
