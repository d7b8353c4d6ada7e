/*
 * Gives up system calls that no server needs and that an attacker who has taken it over would use
 * next: other programs, other processes, mounts, modules, clocks, keys. They fail with EPERM
 * afterwards, in all threads, for ever. docs/explanation/decisions/036 gives the reasons.
 */
#ifndef WEIR_CLI_SERVE_SERVE_SECCOMP_H
#define WEIR_CLI_SERVE_SERVE_SECCOMP_H

#include <stdbool.h>
#include <stddef.h>

enum seccomp_choice { SECCOMP_ON, SECCOMP_OFF };

/*
 * Installs the filter, unless it is off. Call it before any thread starts. A kernel or a machine
 * without such filters is logged, and the server runs without one.
 */
void serve_seccomp(int choice);

/*
 * Installs the filter: denied calls fail with this errno. Returns false, with errno, if that is not
 * possible. A process cannot undo it.
 */
bool seccomp_install(int error);

/* Returns the name of the i-th system call that is always denied, and its number; NULL after the
 * last. */
const char *seccomp_denied(size_t i, long *number);

#endif
