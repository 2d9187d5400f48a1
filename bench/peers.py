#!/usr/bin/env python3
"""Jobs, command lines and tests that others have written for fio, diskspd, IOzone, IOR and mdtest.

    bench/peers.py jobs                public fio jobs, run by fio and by halfpower
    bench/peers.py calls               the same jobs under strace: offsets, syncs, files, times, reported against counted requests
    bench/peers.py random              jobs with random options, run by fio and by halfpower
    bench/peers.py lines               public command lines of diskspd and IOzone, run by halfpower
    bench/peers.py fio-tests SOURCE    fio's own tests, with halfpower in fio's place
    bench/peers.py ior --ior PATH --mdtest PATH
                                       IOR 4 and mdtest 4 in three namespaces, in turn with halfpower
    bench/peers.py page                make the tables of docs/accuracy.md again from bench/results

bench/peers/jobs.json and lines.json hold only the options, with their repository and path (or the number of a stored file).
unlisted.json has 150 jobs that are in neither: bench/peers.py calls --jobs bench/peers/unlisted.json
"""

import pathlib

from lib.fio_suite import OPTIONS, fio_tests, fio_tests_summary
from lib.ior_peers import ior, ior_summary
from lib.public_calls import public_calls
from lib.public_jobs import JOBS, jobs, jobs_summary
from lib.public_lines import LINES, lines, lines_summary
from lib.random_jobs import COMMAND, random_jobs
from lib.runner import Measurement, main

MEASUREMENTS = {
    "jobs": Measurement("public fio jobs, run by fio and by halfpower", jobs, {
        "--jobs": {"type": pathlib.Path, "default": JOBS},
        "--only": {"help": "only those whose repository or path contains this"},
        "--workers": {"type": int, "default": 2},
        "--keep": {"type": pathlib.Path, "help": "file with the outcomes so far: jobs in it are not run again"},
    }, jobs_summary),
    "calls": Measurement("public fio jobs, call by call", public_calls, {
        "--jobs": {"type": pathlib.Path, "default": JOBS},
        "--only": {"help": "only those whose repository or path contains this"},
        "--workers": {"type": int, "default": 2},
        "--keep": {"type": pathlib.Path, "help": "file with the outcomes so far: jobs in it are not run again"},
    }, jobs_summary),
    "random": Measurement("jobs with random options, run by fio and by halfpower", random_jobs, COMMAND),
    "lines": Measurement("public command lines of diskspd and IOzone, run by halfpower", lines, {
        "--lines": {"type": pathlib.Path, "default": LINES},
        "--only": {"help": "only those whose tool or source contains this"},
    }, lines_summary),
    "ior": Measurement("IOR and mdtest side by side", ior, {
        "--ior": {"type": pathlib.Path, "required": True, "help": "the original program, built with MPI"},
        "--mdtest": {"type": pathlib.Path, "required": True, "help": "the original program, built with MPI"},
        "--rounds": {"type": int, "default": 3},
    }, ior_summary),
    "fio-tests": Measurement("fio's own tests, with halfpower in fio's place", fio_tests, OPTIONS, fio_tests_summary),
}

if __name__ == "__main__":
    main(__doc__, "accuracy.md", MEASUREMENTS)
