/* How many threads can run at the same time. */
#ifndef WEIR_SERVER_LOOP_PROCESSORS_H
#define WEIR_SERVER_LOOP_PROCESSORS_H

/* Returns the number allowed by this thread's affinity and its control groups'
 * quota; at least 1. */
unsigned processors_allowed(void);

/*
 * Returns the number allowed by the quota alone, of control groups version 1 or 2, rounded up to
 * whole processors; 0 if there is no quota. `root` is put before /proc and /sys; it is "" except in
 * tests.
 */
unsigned processors_by_quota(const char *root);

#endif
