/*
 * The signals of weir serve.
 *
 *   SIGHUP           waits until the loop reads it.
 *   SIGTERM, SIGINT  wake the loop too. Their handler also sets a time limit for the end, because
 *                    the first thread may be waiting for another one that does not go on.
 *   SIGBUS           an access to a state file failed, because another program has truncated it or
 *                    its disk is broken. The process ends at once, as after a SIGKILL: every file
 *                    of the state keeps what it has. Any other SIGBUS has its default action.
 *   SIGALRM          ends the process when that time is over, and only if the kernel sent it.
 *   SIGPIPE, SIGXFSZ, SIGUSR1, SIGUSR2 and others without a meaning here are ignored. Not SIGQUIT,
 *                    with which an operator gets a core, nor SIGXCPU, which is a limit that
 *                    somebody has set.
 *
 * The handlers call only what may be called in a signal handler.
 */
#ifndef WEIR_CLI_SERVE_SERVE_SIGNALS_H
#define WEIR_CLI_SERVE_SERVE_SIGNALS_H

/* A server that was told to stop ends within this time. It is more than SERVER_DRAIN_MS. */
#define SERVE_STOP_S 5

/*
 * Sets up all signals. Call it before any thread starts, because threads inherit the mask. Returns
 * a descriptor from which serve_signals_take() reads, or -1 after a message.
 */
int serve_signals_open(void);

/* Names a file that is removed if a handler ends the process; NULL: none. `path` must stay as it is
 * until the next call. */
void serve_signals_remove(const char *path);

/* Returns the next signal that has arrived: SIGHUP, SIGTERM, SIGINT or SERVE_WAKE; 0: none has. */
int serve_signals_take(int fd);

/* Makes serve_signals_take() return SERVE_WAKE, which is no signal's number. Any thread may call
 * it, between serve_signals_open() and the end of the process. */
#define SERVE_WAKE 255
void serve_signals_wake(void);

#endif
