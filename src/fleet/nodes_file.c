/* Keeps the number of the fleet's nodes in a file, so that a node that is restarted while the store
 * is away does not take itself for the only one. The file is mapped: a change costs no system call,
 * and a process that is killed loses nothing. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "fleet/fleet.h"
#include "shared/store/stores.h"

struct nodes_file {
    char mark[8];
    uint64_t nodes; /* 0: not known */
};

static const struct nodes_file empty = {.mark = "weir n1"};

/* Makes sure that the file has its bytes, on the disk too: a write to a hole of a full disk would
 * end the process. */
static bool prepare(int fd)
{
    struct nodes_file found;
    return (pread(fd, &found, sizeof found, 0) == sizeof found &&
            memcmp(found.mark, empty.mark, sizeof empty.mark) == 0) ||
           (ftruncate(fd, 0) == 0 && pwrite(fd, &empty, sizeof empty, 0) == sizeof empty);
}

int fleet_keep_nodes(struct weir_fleet *fleet, const char *path, struct weir_error *error)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    void *map = fd >= 0 && prepare(fd)
                    ? mmap(NULL, sizeof empty, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                    : MAP_FAILED;
    int e = map != MAP_FAILED ? 0 : fail(error, WEIR_EIO, "%s: %s", path, strerror(errno));
    if (fd >= 0) {
        (void)close(fd);
    }
    if (e == 0) {
        fleet->nodes_file = map;
        members_keep(&fleet->shared->members, &fleet->nodes_file->nodes);
    }
    return e;
}

void fleet_forget_nodes(struct weir_fleet *fleet)
{
    if (fleet->nodes_file != NULL) {
        (void)munmap(fleet->nodes_file, sizeof *fleet->nodes_file);
        fleet->nodes_file = NULL;
    }
}
