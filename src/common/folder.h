/* Lists a folder while other threads open and close descriptors. */
#ifndef WEIR_COMMON_FOLDER_H
#define WEIR_COMMON_FOLDER_H

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

/*
 * Opens a folder as opendir() does; NULL and errno if that fails. Close it with closedir().
 *
 * opendir() opens its descriptor out of ThreadSanitizer's sight, and libuv closes its own the same
 * way. If both had one number, closedir() looks like a race with the thread that last read from
 * libuv's descriptor. open() tells the sanitizer that the number has a new owner.
 */
static inline DIR *folder_open(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    if (folder == NULL && fd >= 0) {
        (void)close(fd);
    }
    return folder;
}

#endif
