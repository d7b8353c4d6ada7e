#include "cli/serve/serve_watch.h"

#include <limits.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/arena.h"
#include "rules/file/files.h"

#define LINKS_MAX 16 /* longest chain of links */
#define FILE_BYTES_MAX (64u << 20)
#define EVENTS                                                                                     \
    (IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_ATTRIB |            \
     IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)

/* ---- every file of the rules ---- */

struct visitor {
    rules_file_fn fn;
    void *arg;
};

static int visit(void *arg, const char *path)
{
    const struct visitor *v = arg;
    v->fn(v->arg, &(struct source_file){.path = path});
    return 0;
}

static void each_rule_file(const struct watch *w, rules_file_fn fn, void *arg)
{
    if (w->config != NULL) {
        (void)config_each_file(w->config, visit, &(struct visitor){fn, arg});
    }
}

static void each_other(const struct watch *w, rules_file_fn fn, void *arg)
{
    for (size_t i = 0; i < WATCH_ALSO; i++) {
        if (w->also[i] != NULL) {
            fn(arg, &(struct source_file){.path = w->also[i]});
        }
    }
}

static void each_file(const struct watch *w, rules_file_fn fn, void *arg)
{
    each_rule_file(w, fn, arg);
    each_other(w, fn, arg);
    if (w->rules != NULL) {
        rules_files(w->rules, fn, arg);
    }
}

/* ---- metadata and content of the files ---- */

static void mix_looks(void *arg, const struct source_file *file)
{
    struct stat st = {0};
    bool there = stat(file->path, &st) == 0;
    int64_t looks[] = {there,
                       (int64_t)st.st_dev,
                       (int64_t)st.st_ino,
                       st.st_size,
                       st.st_mtim.tv_sec,
                       st.st_mtim.tv_nsec,
                       st.st_ctim.tv_sec,
                       st.st_ctim.tv_nsec};
    hash_mix(arg, file->path, strlen(file->path));
    hash_mix(arg, looks, sizeof looks);
}

static void mix_bytes(struct hash *h, const char *path, bool there, struct hash bytes)
{
    const uint64_t both[] = {bytes.low, bytes.high};
    hash_mix(h, path, strlen(path));
    hash_mix(h, &there, sizeof there);
    hash_mix(h, both, there ? sizeof both : 0);
}

static void mix_content(void *arg, const struct source_file *file)
{
    struct arena arena = ARENA_INIT;
    struct weir_error error;
    struct weir_text text = {"", 0};
    struct hash bytes = {0, 0};
    bool there = file_read(&arena, file->path, FILE_BYTES_MAX, &text, &error) == 0;
    if (there) {
        hash_mix(&bytes, text.at, text.len);
    }
    mix_bytes(arg, file->path, there, bytes);
    arena_finish(&arena);
}

/* Adds the bytes that the rules have read, whatever the file contains by now. */
static void mix_read(void *arg, const struct source_file *file)
{
    mix_bytes(arg, file->path, file->was_read, file->hash);
}

static struct hash of_files(const struct watch *w, rules_file_fn mixing)
{
    struct hash h = {0, 0};
    each_file(w, mixing, &h);
    return h;
}

/* ---- folders ---- */

static void watch_folder(struct watch *w, const char *path, size_t len)
{
    char folder[PATH_MAX];
    (void)snprintf(folder, sizeof folder, "%.*s", len > 0 ? (int)len : 1, len > 0 ? path : ".");
    if (inotify_add_watch(w->fd, folder, EVENTS) < 0) {
        w->complete = false;
    }
}

/*
 * Returns the length of the folder in a path, with the slash: that of "/etc/" in
 * "/etc/weir.yaml".
 */
static size_t folder_len(const char *path, size_t len)
{
    while (len > 0 && path[len - 1] != '/') {
        len--;
    }
    return len;
}

static void watch_way(struct watch *w, const char *path, int links);

/*
 * If the first `len` bytes of a path are a symbolic link, watches its folder and the path that
 * it leads to.
 */
static void watch_link(struct watch *w, const char *path, size_t len, int links)
{
    char link[PATH_MAX];
    char to[PATH_MAX];
    char next[2 * PATH_MAX];
    (void)snprintf(link, sizeof link, "%.*s", (int)len, path);
    ssize_t n = readlink(link, to, sizeof to - 1);
    if (n <= 0) {
        return;
    }
    to[n] = '\0';
    size_t folder = folder_len(path, len);
    watch_folder(w, path, folder);
    (void)snprintf(next, sizeof next, "%.*s%s", to[0] == '/' ? 0 : (int)folder, path, to);
    watch_way(w, next, links + 1);
}

/* Watches the folder of the path, and each folder with a link on the way to it. */
static void watch_way(struct watch *w, const char *path, int links)
{
    size_t len = strlen(path);
    if (links > LINKS_MAX || len >= PATH_MAX) {
        w->complete = false;
        return;
    }
    watch_folder(w, path, folder_len(path, len));
    for (size_t i = 1; i <= len; i++) {
        if ((path[i] == '/' || path[i] == '\0') && path[i - 1] != '/') {
            watch_link(w, path, i, links);
        }
    }
}

static void watch_file(void *arg, const struct source_file *file)
{
    watch_way(arg, file->path, 0);
}

static int watch_path(void *arg, const char *path)
{
    struct watch *w = arg;
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        watch_way(w, path, 0);
        watch_folder(w, path, strlen(path));
    }
    return 0;
}

/* Watches all folders anew, because links may lead elsewhere now and rules may name other files. */
static void watch_again(struct watch *w)
{
    if (w->fd >= 0) {
        (void)close(w->fd);
        w->fd = -1;
    }
    w->complete = false;
    if (!w->ask_kernel || (w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) < 0) {
        return;
    }
    w->complete = true;
    if (w->config != NULL) {
        (void)config_each_path(w->config, watch_path, w);
    }
    each_file(w, watch_file, w);
}

/* ---- public functions ---- */

void watch_open(struct watch *w, const char *config, bool ask_kernel)
{
    *w = (struct watch){.config = config, .open = true, .ask_kernel = ask_kernel, .fd = -1};
    watch_before(w);
}

void watch_close(struct watch *w)
{
    if (w->fd >= 0) {
        (void)close(w->fd);
    }
    w->fd = -1;
}

void watch_events(struct watch *w, uint64_t now_ns)
{
    char events[4096] __attribute__((aligned(8)));
    if (!w->open) {
        return;
    }
    while (w->fd >= 0 && read(w->fd, events, sizeof events) > 0) {
    }
    w->first_ns = w->first_ns != 0 ? w->first_ns : now_ns;
    w->last_ns = now_ns;
}

uint64_t watch_due_ns(const struct watch *w)
{
    uint64_t look = w->complete || !w->open ? UINT64_MAX : w->look_ns;
    if (w->first_ns == 0) {
        return look;
    }
    uint64_t quiet = w->last_ns + WATCH_QUIET_NS;
    uint64_t most = w->first_ns + WATCH_MOST_NS;
    uint64_t due = quiet < most ? quiet : most;
    return due < look ? due : look;
}

bool watch_is_new(struct watch *w, uint64_t now_ns)
{
    bool told = w->first_ns != 0;
    if (now_ns < watch_due_ns(w)) {
        return false;
    }
    w->first_ns = 0;
    w->look_ns = now_ns + WATCH_LOOK_NS;
    watch_again(w); /* first, so that later changes cause an event */
    struct hash looks = of_files(w, mix_looks);
    if (hash_same(looks, w->looks)) {
        return false;
    }
    /*
     * Found without an event, perhaps in the middle of a change: examine it again when it is
     * quiet.
     */
    if (!told) {
        w->first_ns = now_ns;
        w->last_ns = now_ns;
        return false;
    }
    w->looks = looks;
    struct hash before = w->content;
    w->content = of_files(w, mix_content);
    return !hash_same(w->content, before);
}

void watch_before(struct watch *w)
{
    if (w->open) {
        w->before = (struct hash){0, 0};
        each_rule_file(w, mix_content, &w->before);
        each_other(w, mix_content, &w->before);
    }
}

void watch_also(struct watch *w, const char *const files[WATCH_ALSO])
{
    memcpy(w->also, files, sizeof w->also);
    if (w->open) {
        each_other(w, mix_content, &w->before);
    }
}

void watch_after(struct watch *w)
{
    if (!w->open) {
        return;
    }
    w->looks = of_files(w, mix_looks);
    /* In the order of each_file(), so that the hashes can be compared. */
    w->content = w->before;
    rules_files(w->rules, mix_read, &w->content);
    if (!hash_same(of_files(w, mix_content), w->content)) {
        w->looks = (struct hash){0, 0}; /* a file was written in the meantime */
    }
}

void watch_begin(struct watch *w, struct weir_rules *rules, uint64_t now_ns)
{
    if (!w->open) {
        return;
    }
    w->rules = rules;
    w->look_ns = now_ns + WATCH_LOOK_NS;
    watch_again(w); /* first, so that later changes cause an event */
    watch_after(w);
    if (hash_same(w->looks, (struct hash){0, 0})) {
        watch_events(w, now_ns);
    }
}
