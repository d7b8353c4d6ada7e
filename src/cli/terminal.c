#include "cli/terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "common/buffer.h"

#define ENTER "\33[?1049h\33[?25l\33[2J" /* alternate screen, no cursor */
#define LEAVE "\33[?25h\33[?1049l"
#define PAINT_MAX (1u << 20)

/* Static, because signal handlers have no arguments: a process has one terminal. */
static struct termios saved;
static volatile sig_atomic_t painted; /* the terminal is in use and must be restored */
static volatile sig_atomic_t ended_by;
static volatile sig_atomic_t resized;
static volatile sig_atomic_t stopped;
static sigset_t before; /* the signal mask before */

/* ---- bytes ---- */

static bool put_all(struct weir_text text)
{
    while (text.len > 0) {
        struct pollfd p = {.fd = STDOUT_FILENO, .events = POLLOUT};
        ssize_t n = write(STDOUT_FILENO, text.at, text.len);
        if (n < 0 && errno == EAGAIN) {
            (void)poll(&p, 1, 1000);
        } else if (n < 0 && errno != EINTR) {
            return false;
        }
        text = text_after(text, n > 0 ? (size_t)n : 0);
    }
    return true;
}

/* Restores the terminal. It calls only functions that a signal handler may call. */
static void give_back(void)
{
    if (painted) {
        painted = 0;
        (void)put_all(TEXT(LEAVE));
        (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &saved);
    }
}

static bool take(void)
{
    struct termios mine = saved;
    mine.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    mine.c_cc[VMIN] = 0;
    mine.c_cc[VTIME] = 0;
    if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &mine) != 0) {
        return false;
    }
    painted = 1;
    return put_all(TEXT(ENTER));
}

/* ---- signals ---- */

static void on_signal(int number)
{
    if (number == SIGWINCH) {
        resized = 1;
    } else if (number == SIGTSTP) {
        stopped = 1;
    } else {
        ended_by = number;
    }
}

/* A bug in this program: restores the terminal, then lets the signal end the process as usual. */
static void on_fatal(int number)
{
    give_back();
    (void)raise(number); /* SA_RESETHAND: the default action now applies */
}

/* Handles all signals. Those of on_signal() are delivered only while terminal_wait() waits. */
static void handle_all(void)
{
    static const int awaited[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP};
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
    struct sigaction wait = {.sa_handler = on_signal};
    struct sigaction die = {.sa_handler = on_fatal, .sa_flags = (int)SA_RESETHAND};
    sigset_t set;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof awaited / sizeof awaited[0]; i++) {
        (void)sigaddset(&set, awaited[i]);
        (void)sigaction(awaited[i], &wait, NULL);
    }
    for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++) {
        (void)sigaction(fatal[i], &die, NULL);
    }
    (void)sigprocmask(SIG_BLOCK, &set, &before);
}

/* ---- the terminal ---- */

bool terminal_is_there(void)
{
    return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
}

bool terminal_open(void)
{
    static bool registered;
    if (tcgetattr(STDIN_FILENO, &saved) != 0) {
        return false;
    }
    if (!registered) {
        registered = atexit(terminal_close) == 0;
        handle_all();
    }
    return take();
}

void terminal_close(void)
{
    give_back();
}

int terminal_signal(void)
{
    return ended_by;
}

static void suspend(void)
{
    stopped = 0;
    give_back();
    (void)raise(SIGSTOP);
    (void)take();
    resized = 1;
}

/* Sets *event and returns true if a signal has arrived that the caller must know of. */
static bool look(enum terminal_event *event)
{
    if (stopped) {
        suspend();
    }
    if (ended_by != 0) {
        *event = TERMINAL_ENDED;
        return true;
    }
    if (resized) {
        resized = 0;
        *event = TERMINAL_RESIZED;
        return true;
    }
    return false;
}

enum terminal_event terminal_wait(uint64_t until_ms, char *key)
{
    enum terminal_event event;
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    while (!look(&event)) {
        uint64_t now = clock_monotonic_ns() / 1000000;
        uint64_t left = now < until_ms ? until_ms - now : 0;
        struct timespec time = {(time_t)(left / 1000), (long)(left % 1000) * 1000000};
        int got = ppoll(&p, 1, &time, &before);
        if (got == 0) {
            return TERMINAL_TIME;
        }
        if (got > 0) {
            return read(STDIN_FILENO, key, 1) == 1 ? TERMINAL_KEY : TERMINAL_ENDED;
        }
        if (errno != EINTR) {
            return TERMINAL_ENDED;
        }
    }
    return event;
}

void terminal_size(unsigned *columns, unsigned *rows)
{
    struct winsize size = {0};
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
    *columns = known ? size.ws_col : 80;
    *rows = known ? size.ws_row : 24;
}

/* Clears the rest of each line and then the rest of the screen, so that nothing flickers. */
bool terminal_paint(struct weir_text lines)
{
    struct buffer out;
    buffer_init(&out, PAINT_MAX);
    buffer_put(&out, TEXT("\33[H"));
    while (lines.len > 0) {
        buffer_put(&out, text_cut(&lines, '\n'));
        buffer_put(&out, lines.len > 0 ? TEXT("\33[K\r\n") : TEXT("\33[K"));
    }
    buffer_put(&out, TEXT("\33[J"));
    bool good = put_all(buffer_text(&out));
    buffer_finish(&out);
    return good;
}
