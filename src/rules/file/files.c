#include <weir.h>

#include "rules/file/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/maths.h"

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
                     struct weir_text *content, struct weir_error *error)
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

/* Returns whether a text begins as UTF-16: with its mark, or with a NUL beside an ASCII byte. */
static bool is_utf16(struct weir_text text)
{
    return text_starts(text, "\xff\xfe") || text_starts(text, "\xfe\xff") ||
           (text.len > 1 && (text.at[0] == 0) != (text.at[1] == 0));
}

int file_read(struct arena *arena, const char *path, size_t most, struct weir_text *content,
              struct weir_error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    *content = TEXT("");
    if (fd < 0) {
        return fail_errno(error, "cannot be opened", path);
    }
    int e = read_open(arena, fd, path, most, content, error);
    (void)close(fd);
    if (e == 0 && is_utf16(*content)) {
        return fail(error, WEIR_ERULES,
                    "%s: found UTF-16, expected UTF-8; iconv -f UTF-16 -t UTF-8 converts it", path);
    }
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

/* ---- what the values of a file take ---- */

size_t file_lines(const struct source_file *file)
{
    size_t n = 1;
    for (size_t i = 0; i < file->content.len; i++) {
        n += file->content.at[i] == '\n';
    }
    return n;
}

void file_problem(struct reader *r, struct place place, const char *expected)
{
    problem(r->problems, place, "found a value that is not shown here, expected %s", expected);
}

void file_use_begin(struct file_use *use, struct reader *r, const struct node *node,
                    struct source_file *file)
{
    *use = (struct file_use){r, node, file, r->source->arena.bytes};
}

static uint64_t bytes_of(const struct file_use *use)
{
    return use->r->source->arena.bytes - use->before;
}

bool file_use_fits(const struct file_use *use, uint64_t more)
{
    char have[QUANTITY_MAX];
    const struct config *config = use->r->config;
    if (add_sat(config->files_bytes + bytes_of(use), more) <= config->files_most) {
        return true;
    }
    problem(use->r->problems, use->node->place,
            "%s: found more than fits into the %s of server.memory, expected a shorter file; or "
            "raise server.memory",
            use->file->path, size_print(config->files_most, have));
    return false;
}

void file_use_end(const struct file_use *use, uint64_t compiled)
{
    uint64_t bytes = bytes_of(use) + compiled;
    use->file->bytes += bytes;
    use->r->config->files_bytes += bytes;
}

/* ---- files by name ---- */

/* Reads the content, if there is room for it. */
static bool read_content(struct reader *r, const struct node *node, struct source_file *file)
{
    struct weir_error error;
    struct file_use use;
    const struct config *config = r->config;
    uint64_t room =
        config->files_most > config->files_bytes ? config->files_most - config->files_bytes : 0;
    size_t most = room < CONFIG_FILE_MAX ? (size_t)room : CONFIG_FILE_MAX;
    file_use_begin(&use, r, node, file);
    int e = file_read(&r->source->arena, file->path, most, &file->content, &error);
    file->was_read = e == 0;
    if (e == 0) {
        hash_mix(&file->hash, file->content.at, file->content.len);
    } else {
        file->content.at = NULL;
        problem(r->problems, node->place, "%s%s", error.text,
                e == WEIR_EINVAL && most < CONFIG_FILE_MAX ? "; or raise server.memory" : "");
    }
    file_use_end(&use, 0);
    return e == 0;
}

struct source_file *named_file(struct reader *r, const struct node *node, struct weir_text name)
{
    if (r->no_files) {
        problem(r->problems, node->place,
                "found a file, expected values: only the rule file may name files");
        return NULL;
    }
    struct arena *arena = &r->source->arena;
    bool absolute = name.len > 0 && name.at[0] == '/';
    const char *path = arena_format(arena, "%.*s%.*s", absolute ? 0 : (int)r->folder.len,
                                    r->folder.at, TEXT_ARGS(name));
    struct source_file *file = path != NULL ? file_of(r->source, path) : NULL;
    if (file == NULL || file->content.at != NULL) {
        return file;
    }
    return read_content(r, node, file) ? file : NULL;
}
