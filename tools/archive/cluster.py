# SPDX-License-Identifier: MIT
"""The workers: of this machine, of a scheduler that runs, or jobs of Slurm."""
import os
import shutil
import socket
import subprocess
import time

from words import EXIT_UNAVAILABLE, Refusal, say

ATTEMPTS = 3  # of a task


class Cluster:
    """A client of Dask, and what this program started for it."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.resources = {"GPU": 1} if options.gpu else {"CORES": options.cores}
        self.cluster = self.client = self.job = None
        self.security, self.is_awaited = None, False

    def open(self):
        try:
            import dask
            import distributed
        except ImportError as error:
            raise Refusal(EXIT_UNAVAILABLE, f"{error}: install python3-distributed") from error
        dask.config.set({"distributed.admin.log-format": "pnradar-archive: dask: %(message)s",
                         "distributed.scheduler.allowed-failures": ATTEMPTS,
                         "distributed.comm.retry.count": 2})
        self.dask = distributed
        address = self.options.cluster
        if address == "local":
            address = self.open_local()
        elif address == "slurm":
            address = self.open_slurm()
        self.address = address
        self.connect()
        return self

    def n_workers(self):
        if self.options.workers:
            return self.options.workers
        return max(1, len(os.sched_getaffinity(0)) // self.options.cores)

    def open_local(self):
        """Workers are threads of this process: a task is a process of its own anyway."""
        self.cluster = self.dask.LocalCluster(
            n_workers=self.n_workers(), threads_per_worker=1, processes=False,
            dashboard_address=None, memory_limit=0, resources=self.resources)
        return self.cluster

    def open_slurm(self):
        """A scheduler here, with keys of its own, and an array job of workers that join it."""
        if shutil.which("sbatch") is None:
            raise Refusal(EXIT_UNAVAILABLE, "--cluster slurm: there is no sbatch: install slurm-client")
        self.security = self.dask.security.Security.temporary()
        host = os.environ.get("PNR_ARCHIVE_HOST", socket.gethostname())
        self.cluster = self.dask.LocalCluster(
            n_workers=0, processes=True, protocol="tls", host=host, scheduler_port=0,
            dashboard_address=None, security=self.security)
        self.job = self.submit(self.cluster.scheduler_address)
        say(f"job {self.job} of Slurm: {self.n_workers()} workers for {self.cluster.scheduler_address}")
        return self.cluster

    def submit(self, address):
        """Writes and submits the job. Returns its number."""
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
        has = ",".join(f"{name}={n}" for name, n in self.resources.items())
        lines.append(f"exec /usr/bin/python3 -m distributed.cli.dask_worker {address} --nthreads 1 "
                     f"--no-dashboard --no-nanny --memory-limit 0 --resources {has} "
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
        """Connects, within the patience: a scheduler may start again."""
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
        """The addresses of the workers that have the resource of a task."""
        try:
            known = self.client.scheduler_info()["workers"]
        except (KeyError, OSError):
            return []
        return [address for address, worker in known.items()
                if all(worker["resources"].get(n, 0) >= k for n, k in self.resources.items())]

    def close(self):
        if self.job is not None:
            subprocess.run(["scancel", self.job], check=False)
        if self.client is not None:
            self.client.close(timeout=5)
        if self.cluster is not None:
            self.cluster.close(timeout=5)
        shutil.rmtree(os.path.join(self.folder, "keys"), ignore_errors=True)
