/* How many threads can run at the same time. */
#ifndef WEIR_SERVER_NET_PROCESSORS_H
#define WEIR_SERVER_NET_PROCESSORS_H

/* By the affinity of this thread and the quota of its control groups; at least 1. */
unsigned processors_allowed(void);

/*
 * By the quota alone, of version 1 and 2: its processors, rounded up; 0: there is none.
 * `root` stands before /proc and /sys; "" but for tests.
 */
unsigned processors_by_quota(const char *root);

#endif
