#include <weir.h>

#include "rules/file/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

/* Reads up to `size` bytes: the file's size may have changed since fstat(). */
static int read_all(int fd, const char *path, char *to, size_t size, size_t *got,
                    struct weir_error *error)
{
    *got = 0;
    while (*got < size) {
        ssize_t n = read(fd, to + *got, size - *got);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return fail_errno(error, "cannot be read", path);
        }
        if (n == 0) {
            break;
        }
        *got += (size_t)n;
    }
    return 0;
}

static int read_open(struct arena *arena, int fd, const char *path, size_t most,
                     struct text *content, struct weir_error *error)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return fail_errno(error, "cannot be examined", path);
    }
    if (!S_ISREG(st.st_mode)) {
        return fail(error, WEIR_EACCES, "%s: found a %s, expected a file", path,
                    S_ISDIR(st.st_mode) ? "folder" : "device, socket or pipe");
    }
    if ((uint64_t)st.st_size > most) {
        return fail(error, WEIR_EINVAL, "%s: found %lld bytes, expected at most %zu", path,
                    (long long)st.st_size, most);
    }
    size_t size = (size_t)st.st_size;
    char *to = arena_take(arena, size + 1);
    if (to == NULL) {
        return fail(error, WEIR_ENOMEM, "%s: out of memory", path);
    }
    content->at = to;
    return read_all(fd, path, to, size, &content->len, error);
}

int file_read(struct arena *arena, const char *path, size_t most, struct text *content,
              struct weir_error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        return fail_errno(error, "cannot be opened", path);
    }
    int e = read_open(arena, fd, path, most, content, error);
    (void)close(fd);
    return e;
}

/* Returns the source's file of this path, a new one without content if there is none. */
static struct source_file *file_of(struct source *source, const char *path)
{
    struct source_file *file = source->files;
    while (file != NULL && strcmp(file->path, path) != 0) {
        file = file->next;
    }
    if (file == NULL && (file = arena_take(&source->arena, sizeof *file)) != NULL) {
        *file = (struct source_file){.path = path, .next = source->files};
        source->files = file;
    }
    return file;
}

struct source_file *named_file(struct reader *r, const struct node *node, struct text name)
{
    struct weir_error error;
    struct arena *arena = &r->source->arena;
    bool absolute = name.len > 0 && name.at[0] == '/';
    const char *path = arena_format(arena, "%.*s%.*s", absolute ? 0 : (int)r->folder.len,
                                    r->folder.at, TEXT_ARGS(name));
    struct source_file *file = path != NULL ? file_of(r->source, path) : NULL;
    if (file == NULL || file->content.at != NULL) {
        return file;
    }
    if (file_read(arena, path, CONFIG_FILE_MAX, &file->content, &error) != 0) {
        file->content.at = NULL;
        problem(r->problems, node->place, "%s", error.text);
        return NULL;
    }
    return file;
}
