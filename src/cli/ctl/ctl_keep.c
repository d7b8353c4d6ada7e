#include "cli/ctl/ctl_keep.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rules/file/files.h"
#include "rules/file/yaml_write.h"

#define HEAD "# Written by weir ctl put --keep, which replaces this file.\nlimits:\n"
#define KEPT_MAX (2 * DOCUMENT_BYTES_MAX)

struct keep {
    struct ctl *ctl;
    struct weir_text name;
    const struct http_call *put;
    struct arena arena;
    struct weir_text now;    /* what FILE will contain */
    unsigned line;           /* of the limit in it */
    bool there;              /* there is an old FILE: */
    struct weir_text before; /* what it contains */
    struct stat st;
};

/* ---- what the file contains ---- */

/* Returns the only limit of such a file; NULL if it is no such file. */
static const struct node *limit_in(struct arena *arena, struct weir_text text)
{
    struct problems problems = {0};
    const struct node *root = document_read(arena, "file", text, &problems);
    const struct node *limits = root != NULL && root->kind == NODE_MAP && root->count == 1
                                    ? node_find(root, "limits")
                                    : NULL;
    problems_finish(&problems);
    return limits != NULL && limits->kind == NODE_LIST && limits->count == 1 ? limits->items[0]
                                                                             : NULL;
}

/* Returns the node in one line; NULL without memory. The caller frees it. */
static char *print_node(const struct node *node)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (out != NULL) {
        yaml_put_node(out, node);
        (void)fclose(out);
    }
    return text;
}

/* Makes the limit the item of a list, as it was written, with its comments. */
static struct weir_text as_item(struct arena *arena, struct weir_text limit)
{
    struct buffer out;
    buffer_init(&out, KEPT_MAX);
    buffer_put(&out, TEXT(HEAD "  -\n"));
    while (limit.len > 0) {
        const char *end = memchr(limit.at, '\n', limit.len);
        size_t n = end != NULL ? (size_t)(end - limit.at) : limit.len;
        buffer_put(&out, n > 0 ? TEXT("    ") : TEXT(""));
        buffer_put(&out, (struct weir_text){limit.at, n});
        buffer_put(&out, TEXT("\n"));
        limit = text_after(limit, n + (end != NULL));
    }
    struct weir_text all =
        out.full ? (struct weir_text){NULL, 0} : arena_text(arena, buffer_text(&out));
    buffer_finish(&out);
    return all;
}

/* Composes the file. A text that means something else as an item, such as one with "---", is
 * written in one line. */
static bool compose(struct keep *k)
{
    struct problems problems = {0};
    const struct node *limit = document_read(&k->arena, "limit", k->put->body, &problems);
    problems_finish(&problems);
    char *expected = limit != NULL ? print_node(limit) : NULL;
    if (expected == NULL) {
        return false;
    }
    k->now = as_item(&k->arena, k->put->body);
    const struct node *item = k->now.at != NULL ? limit_in(&k->arena, k->now) : NULL;
    char *found = item != NULL ? print_node(item) : NULL;
    if (found == NULL || strcmp(found, expected) != 0) {
        k->now = text_of(arena_format(&k->arena, HEAD "  - %s\n", expected));
        item = limit_in(&k->arena, k->now);
    }
    k->line = item != NULL ? item->place.line : 0;
    free(found);
    free(expected);
    return item != NULL;
}

/* ---- the file ---- */

static int refuse_file(const struct keep *k, const char *what)
{
    return cli_complain(&cli_ctl, "--keep: %s %s", k->ctl->keep, what);
}

/* Reads an old FILE, which must be one that this command has written for this limit. */
static int look_at_file(struct keep *k)
{
    struct weir_error error;
    const char *path = k->ctl->keep;
    if (lstat(path, &k->st) != 0) {
        return errno == ENOENT ? CLI_OK : refuse_file(k, strerror(errno));
    }
    if (!S_ISREG(k->st.st_mode)) {
        return refuse_file(k, "is not a regular file");
    }
    if (file_read(&k->arena, path, KEPT_MAX, &k->before, &error) != 0) {
        return cli_complain(&cli_ctl, "--keep: %s", error.text);
    }
    const struct node *limit = text_starts(k->before, HEAD) ? limit_in(&k->arena, k->before) : NULL;
    const struct node *name =
        limit != NULL && limit->kind == NODE_MAP ? node_find(limit, "name") : NULL;
    k->there = true;
    return name != NULL && name->kind == NODE_SCALAR && text_equal(name->scalar, k->name)
               ? CLI_OK
               : refuse_file(k, "exists, and was not written for this limit; expected a new file");
}

/* Writes all of it to the disk, with the owner and the mode of an old FILE. */
static bool fill(const struct keep *k, int fd, struct weir_text text)
{
    bool same = !k->there || ((fchown(fd, k->st.st_uid, k->st.st_gid) == 0 ||
                               (k->st.st_uid == geteuid() && k->st.st_gid == getegid())) &&
                              fchmod(fd, k->st.st_mode & 07777) == 0);
    while (same && text.len > 0) {
        ssize_t n = write(fd, text.at, text.len);
        if (n <= 0 && errno != EINTR) {
            return false;
        }
        text = text_after(text, n > 0 ? (size_t)n : 0);
    }
    return same && fsync(fd) == 0;
}

/* Gives a draft the default mode of new files. mkostemp() makes it readable for this user alone. */
static bool open_to_others(int fd)
{
    mode_t mask = umask(0);
    (void)umask(mask);
    return fchmod(fd, 0666 & ~mask) == 0;
}

/* Replaces FILE at once: the server finds the old or the new one. Its draft has a hidden name,
 * which the server does not read. */
static bool write_file(const struct keep *k, struct weir_text text)
{
    const char *path = k->ctl->keep;
    const char *slash = strrchr(path, '/');
    int folder = slash != NULL ? (int)(slash + 1 - path) : 0;
    char draft[PATH_MAX];
    int n = snprintf(draft, sizeof draft, "%.*s.%s.XXXXXX", folder, path, path + folder);
    int fd = n < PATH_MAX ? mkostemp(draft, O_CLOEXEC) : -1;
    bool written = fd >= 0 && open_to_others(fd) && fill(k, fd, text) && rename(draft, path) == 0;
    int why = errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    if (fd >= 0 && !written) {
        (void)unlink(draft);
    }
    errno = why;
    return written;
}

/* ---- the server ---- */

/* Returns the line of the limit in a rule file; 0 if it is in none, or was not found. */
static unsigned line_of(const json_t *said, struct weir_text name)
{
    const json_t *limits = json_object_get(said, "limits");
    for (size_t i = 0; i < json_array_size(limits); i++) {
        const json_t *limit = json_array_get(limits, i);
        if (text_equal(text_of(json_text(limit, "name")), name)) {
            return (unsigned)ctl_count(limit, "line");
        }
    }
    return 0;
}

static int ask_line(const struct keep *k, unsigned *line)
{
    json_t *said;
    struct http_call call = {"POST", "/v1/explain", "application/json",
                             TEXT("{\"attributes\":{}}")};
    int code = admin_call_json(&k->ctl->client, &call, &said, NULL, NULL);
    *line = code == CLI_OK ? line_of(said, k->name) : 0;
    json_decref(said);
    return code;
}

/* Sends a request whose answer is not shown, except for what it says about the rules. */
static int send_quietly(const struct keep *k, const struct http_call *call)
{
    json_t *said;
    int code = admin_call_json(&k->ctl->client, call, &said, NULL, NULL);
    admin_tell_messages(json_object_get(said, "messages"));
    json_decref(said);
    return code;
}

static const struct http_call reload = {"POST", "/v1/reload", NULL, {"", 0}};

/* Returns whether the server has read the limit from FILE. */
static bool is_read(const struct keep *k)
{
    unsigned line;
    if (send_quietly(k, &reload) != CLI_OK || ask_line(k, &line) != CLI_OK) {
        return false;
    }
    if (line != k->line) {
        (void)cli_fail(
            &cli_ctl,
            "the server does not read %s; expected a new file NAME.yaml in a folder that "
            "its --config names",
            k->ctl->keep);
    }
    return line == k->line;
}

/* ---- the steps ---- */

static int keep_it(struct keep *k)
{
    if (!write_file(k, k->now)) {
        return cli_fail(&cli_ctl, "--keep: cannot write %s: %m", k->ctl->keep);
    }
    if (is_read(k)) {
        return CLI_OK;
    }
    bool undone = k->there ? write_file(k, k->before) : unlink(k->ctl->keep) == 0;
    if (!undone) {
        return cli_fail(&cli_ctl, "--keep: cannot take %s back: %m", k->ctl->keep);
    }
    (void)send_quietly(k, &reload);
    return send_quietly(k, k->put) == CLI_OK
               ? cli_fail(&cli_ctl, "the limit is in effect until the next reload; it is not kept")
               : CLI_FAILED;
}

/* Checks what can be checked before anything is changed. */
static int look(struct keep *k)
{
    unsigned line;
    int code = look_at_file(k);
    code = code == CLI_OK ? ask_line(k, &line) : code;
    if (code == CLI_OK && line > 0 && !k->there) {
        return cli_complain(&cli_ctl,
                            "--keep: a rule file of the server has this limit already, in its line "
                            "%u: change it there, or name that file if --keep has written it",
                            line);
    }
    return code == CLI_OK && !compose(k) ? cli_fail(&cli_ctl, "out of memory") : code;
}

static void print_kept(const struct ctl *ctl, json_t *said)
{
    const json_t *limit = json_array_get(json_object_get(said, "limits"), 0);
    if (ctl->json) {
        (void)json_object_set_new(said, "kept", json_string(ctl->keep));
        ctl_print_json(said);
        return;
    }
    safe_print(stdout, text_of(json_text(limit, "name")), false);
    (void)printf(": %s, and kept in ", ctl->status == 201 ? "added" : "replaced");
    safe_print(stdout, text_of(ctl->keep), false);
    (void)putchar('\n');
}

int ctl_keep(struct ctl *ctl, struct weir_text name, const struct http_call *put)
{
    struct keep k = {.ctl = ctl, .name = name, .put = put, .arena = ARENA_INIT};
    json_t *said = NULL;
    int code = look(&k);
    if (code == CLI_OK) {
        code = admin_call_json(&ctl->client, put, &said, &ctl->status, NULL);
        admin_tell_messages(json_object_get(said, "messages"));
    }
    code = code == CLI_OK ? keep_it(&k) : code;
    if (code == CLI_OK) {
        print_kept(ctl, said);
    }
    json_decref(said);
    arena_finish(&k.arena);
    return code;
}
