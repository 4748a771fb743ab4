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

        from distributed import get_worker

        base = os.path.join(settings["tasks"], task["id"][:2], task["id"])
        outcome = {"exit_status": None, "error": "", "worker": get_worker().address}
        folder = None
        try:
            if os.path.exists(base + ".json"):  # a worker that was lost has finished the task
                return {**outcome, "exit_status": 0}
            os.makedirs(os.path.dirname(base), exist_ok=True)
            folder = tempfile.mkdtemp(prefix=task["id"] + ".", suffix=".partial",
                                      dir=os.path.dirname(base))
            program = settings["pnradar"]
            # setpriv ends the program with its worker. Code between fork and exec would copy the pages of Dask.
            command = ["setpriv", "--pdeathsig", "KILL",
                       program if os.path.exists(program) else "pnradar", "-c", settings["config"],
                       "-s", f"source.first_sample={task['first_sample']}",
                       "-s", f"source.n_samples={task['n_samples']}",
                       "--print", "json", "--end", folder + "/end", task["input"]]
            environment = dict(os.environ)
            if settings["own_devices"]:  # workers count from 0; a program starts faster if it sees only its GPU
                gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
                number = int(get_worker().name)
                environment["CUDA_VISIBLE_DEVICES"] = gpus[number % len(gpus)] if gpus != [""] else str(number)
            for key in settings["keys"]:
                command += ["-s", key]
            if settings["table"]:
                command += ["-s", f"recorder.results={folder}/table.h5"]
            with open(folder + "/jsonl", "wb") as results, open(folder + "/log", "wb") as log:
                outcome["exit_status"] = subprocess.run(
                    command, stdout=results, stderr=log, stdin=subprocess.DEVNULL, check=False,
                    cwd=settings["cwd"], env=environment).returncode
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
                    lines = log.read().strip().splitlines() or ["no word"]
                outcome["error"] = lines[-1]
        except (OSError, ValueError, KeyError) as error:
            outcome = {**outcome, "exit_status": outcome["exit_status"] or 74, "error": str(error)}
        finally:
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
        return outcome
    return run_task
