# SPDX-License-Identifier: MIT
"""Runs one task in a worker of Dask."""


def task_runner():
    """Returns the function of a task. Dask sends an inner function with its code, so workers do not need
    this file."""
    def run_task(task, settings):
        """Runs pnradar on a part of a recording. Returns the outcome. Raises no exception."""
        import json
        import os
        import shutil
        import subprocess
        import tempfile
        import threading

        from distributed import get_worker

        worker = get_worker()
        base = os.path.join(settings["tasks"], task["id"][:2], task["id"])
        outcome = {"exit_status": None, "error": "", "worker": worker.address}
        folder = None

        slots = worker.__dict__.setdefault("pnradar_slots", {})  # the numbers of its threads; each has a pnradar
        slot = slots.setdefault(threading.get_ident(), len(slots))

        def own_cores():
            """Returns the processors of this thread's pnradar. The pnradars share out the processors of this machine,
            because they slow each other down if each reads with all of them."""
            cores, n = sorted(os.sched_getaffinity(0)), settings["sharers"]
            number = (int(worker.name) * worker.state.nthreads + slot) % n
            return cores[len(cores) * number // n:len(cores) * (number + 1) // n] or cores

        def start(program, environment, log):
            """Starts a pnradar that runs tasks. setpriv ends it with its worker. Code between fork and exec would copy
            the pages of Dask."""
            words = ["setpriv", "--pdeathsig", "KILL"]
            if settings["sharers"]:
                words += ["taskset", "-c", ",".join(map(str, own_cores()))]
            return subprocess.Popen([*words, program, "--tasks"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    stderr=log, cwd=settings["cwd"], env=environment)

        def ask(words):
            """Gives the task to the pnradar of this thread if it waits, or to a new one. Returns the exit status."""
            program = settings["pnradar"] if os.path.exists(settings["pnradar"]) else shutil.which("pnradar") or "pnradar"
            environment = dict(os.environ)
            if settings["sharers"]:  # workers count from 0; a program starts faster if it sees only its GPU
                gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
                number = int(worker.name)
                environment["CUDA_VISIBLE_DEVICES"] = gpus[number % len(gpus)] if gpus != [""] else str(number)
            file = os.stat(program) if os.path.exists(program) else None
            kind = (program, file and (file.st_ino, file.st_mtime_ns), settings["cwd"], slot)
            waiting = worker.__dict__.setdefault("pnradar_waiting", {}).setdefault(kind, [])
            line = json.dumps({"words": words, "out": folder + "/jsonl", "err": folder + "/log"}) + "\n"
            while True:
                is_new = False
                try:
                    process = waiting.pop()
                except IndexError:
                    is_new = True
                    with open(folder + "/log", "ab") as log:
                        process = start(program, environment, log)
                try:
                    process.stdin.write(line.encode())
                    process.stdin.flush()
                except BrokenPipeError:
                    pass
                answer = process.stdout.readline()
                if answer:
                    status = json.loads(answer)["exit_status"]
                    if status == 0:
                        waiting.append(process)
                    else:
                        process.wait()
                    return status
                status = process.wait()
                if is_new or status != 0:  # a pnradar that has waited for a minute has ended with 0
                    return status or 70

        try:
            if os.path.exists(base + ".json"):  # a worker that was lost has finished the task
                return {**outcome, "exit_status": 0}
            os.makedirs(os.path.dirname(base), exist_ok=True)
            folder = tempfile.mkdtemp(prefix=task["id"] + ".", suffix=".partial",
                                      dir=os.path.dirname(base))
            words = ["-c", settings["config"], "-s", f"source.first_sample={task['first_sample']}",
                     "-s", f"source.n_samples={task['n_samples']}",
                     "--print", "json", "--end", folder + "/end", task["input"]]
            for key in settings["keys"]:
                words += ["-s", key]
            if settings["table"]:
                words += ["-s", f"recorder.results={folder}/table.h5"]
            outcome["exit_status"] = ask(words)
            if outcome["exit_status"] == 0:
                with open(folder + "/end", encoding="utf-8") as file:
                    end = json.load(file)
                with open(folder + "/json", "w", encoding="utf-8") as file:
                    json.dump({"task": task, "account": end["account"], "engine": end["engine"]}, file)
                names = [("jsonl", ".jsonl"), ("table.h5", ".h5"), ("json", ".json")]
                for name, suffix in names if settings["table"] else names[::2]:
                    os.replace(f"{folder}/{name}", base + suffix)
            else:
                with open(folder + "/log", encoding="utf-8", errors="replace") as log:
                    lines = log.read().strip().splitlines() or [
                        f"pnradar ended with status {outcome['exit_status']} and without a message"]
                outcome["error"] = lines[-1]
        except (OSError, ValueError, KeyError) as error:
            outcome = {**outcome, "exit_status": outcome["exit_status"] or 74, "error": str(error)}
        finally:
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
        return outcome
    return run_task
