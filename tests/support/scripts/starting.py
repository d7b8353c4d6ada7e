"""What tests need to start a program: a port for it, and the wait until it is ready."""
import random, socket, sys, time

NOT_STARTED = 75
PATIENCE = 60


def await_start(what, process, ready, said=lambda: ""):
    """Returns when ready() is true. The test fails if the process has ended. If it is only late, the test exits with
    NOT_STARTED, which scripts/repeat-tests takes to mean that the machine was too busy: so this function is for nothing
    that happens later, and no other exits with that status. said() is what the program has printed."""
    end = time.monotonic() + PATIENCE
    while not ready():
        assert process.poll() is None, "ended with %d before %s\n%s" % (process.returncode, what, said())
        if time.monotonic() > end:
            print("not ready after %d s: %s\n%s" % (PATIENCE, what, said()), file=sys.stderr, flush=True)
            sys.exit(NOT_STARTED)
        time.sleep(0.01)


def free_port():
    """Below those that the kernel gives to outgoing connections: one of these could take the port a moment later, and
    the ports that floods of other tests have used can be bound by nobody for a minute."""
    while True:
        port = random.randrange(12000, 32000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass
