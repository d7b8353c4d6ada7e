#include "cli/serve/serve_signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/atomic.h"
#include "cli/serve/serve.h"
#include "rules/compiled/state.h"

static int to_loop = -1;   /* the end of a pipe to which handlers write the number of a signal */
static uint64_t to_remove; /* address of the path of a file; 0: none */
static struct sigaction bus_before;

void serve_signals_remove(const char *path)
{
    store_release(&to_remove, (uint64_t)(uintptr_t)path); /* pairs with end_now() */
}

/* Returns in the first thread that calls it; others wait until that one has ended the process, so
 * that the log has one reason. */
static void be_the_first(void)
{
    static uint64_t ending;
    if (exchange_u64(&ending, 1) != 0) {
        for (;;) {
            (void)pause();
        }
    }
}

/* Ends the process from within a handler. */
static void end_now(int status)
{
    const char *path = (const char *)(uintptr_t)load_acquire(&to_remove);
    if (path != NULL) {
        (void)unlink(path);
    }
    _exit(status);
}

/* Hands the signal to the loop. If the pipe is full, the loop has signals to read already. */
static void pass_on(int number)
{
    int before = errno;
    unsigned char byte = (unsigned char)number;
    ssize_t written = write(to_loop, &byte, 1);
    (void)written;
    errno = before;
}

static void on_stop(int number)
{
    static uint64_t stopping;
    if (exchange_u64(&stopping, 1) == 0) {
        (void)alarm(SERVE_STOP_S);
    }
    pass_on(number);
}

/* Called when the time limit of on_stop() is over. A SIGALRM of another process says nothing. */
static void on_late(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    if (info->si_code <= 0) {
        return;
    }
    be_the_first();
    LOG(LEVEL_ERROR,
        "ended by force: a thread did not stop in time, perhaps because another program has "
        "overwritten a state file",
        LOG_COUNT("seconds", SERVE_STOP_S));
    end_now(CLI_FAILED);
}

/*
 * If the reason is not a state file, restores the action of before. The access is then repeated
 * when this function returns; a signal that a process has sent is sent again.
 */
static void on_bus(int number, siginfo_t *info, void *context)
{
    (void)context;
    bool fault = info->si_code > 0; /* otherwise a process has sent it */
    const char *file = fault ? state_file_at(info->si_addr) : NULL;
    if (file != NULL) {
        be_the_first();
        LOG(LEVEL_ERROR,
            "ended: a state file was truncated while in use, or cannot be read; when the server is "
            "started again, the limit of that file starts without keys",
            LOG_STRING("file", file));
        end_now(CLI_STATE);
    }
    (void)sigaction(number, &bus_before, NULL);
    if (!fault) {
        (void)raise(number);
    }
}

/* Lets the signal in, which the program that started us may have blocked. */
static bool unblock(int number)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, number);
    return sigprocmask(SIG_UNBLOCK, &set, NULL) == 0;
}

static bool handle(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    (void)sigfillset(&action.sa_mask);
    (void)sigdelset(&action.sa_mask, SIGBUS);
    return sigaction(number, &action, NULL) == 0 && unblock(number);
}

static bool handle_late(void)
{
    struct sigaction action = {.sa_sigaction = on_late, .sa_flags = SA_SIGINFO | SA_RESTART};
    (void)sigfillset(&action.sa_mask);
    (void)sigdelset(&action.sa_mask, SIGBUS);
    return sigaction(SIGALRM, &action, NULL) == 0 && unblock(SIGALRM);
}

static bool handle_bus(void)
{
    struct sigaction action = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
    (void)sigemptyset(&action.sa_mask);
    return sigaction(SIGBUS, &action, &bus_before) == 0 && unblock(SIGBUS);
}

/* Ignores what would end the process and says nothing to this server: an operator who takes it for
 * another one (SIGUSR1 makes some reopen their logs) must not end it. A write then returns an error
 * instead of SIGPIPE or SIGXFSZ. */
static void ignore_others(void)
{
    static const int numbers[] = {SIGPIPE, SIGXFSZ, SIGUSR1, SIGUSR2,  SIGVTALRM,
                                  SIGPROF, SIGPOLL, SIGPWR,  SIGSTKFLT};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        (void)signal(numbers[i], SIG_IGN);
    }
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++) {
        (void)signal(number, SIG_IGN);
    }
}

int serve_signals_open(void)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        (void)cli_complain(&cli_serve, "cannot wait for signals: %s", strerror(errno));
        return -1;
    }
    to_loop = ends[1]; /* stays open: a signal may come until the end */
    ignore_others();
    if (!handle(SIGHUP, pass_on) || !handle(SIGTERM, on_stop) || !handle(SIGINT, on_stop) ||
        !handle_late() || !handle_bus()) {
        (void)cli_complain(&cli_serve, "cannot handle signals: %s", strerror(errno));
        (void)close(ends[0]);
        return -1;
    }
    return ends[0];
}

void serve_signals_wake(void)
{
    pass_on(SERVE_WAKE);
}

int serve_signals_take(int fd)
{
    unsigned char byte;
    return read(fd, &byte, 1) == 1 ? byte : 0;
}
