"""A supervised process for the tests: it reports what it was given, then waits for the end of its input."""

import json
import os
import resource
import signal
import sys

from tertulia.processes import worker


def main() -> None:
    worker.begin()
    answers = worker.reserve_stdout()
    print("a library prints to standard output")
    report = {
        "environ": dict(os.environ),
        "arguments": sys.argv[2:],
        "niceness": os.nice(0),
        "core_bytes": resource.getrlimit(resource.RLIMIT_CORE)[0],
        "ignores_interrupts": signal.getsignal(signal.SIGINT) is signal.SIG_IGN,
    }
    answers.write(json.dumps(report).encode() + b"\n")
    answers.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
