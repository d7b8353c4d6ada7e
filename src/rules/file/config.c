/* Reads a whole configuration: the sections of a file, the files of a folder, single limits. */
#include "rules/file/config.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/maths.h"
#include "common/array.h"
#include "rules/envoy/envoy.h"
#include "rules/file/adhoc.h"
#include "rules/file/conditions.h"
#include "rules/file/files.h"
#include "rules/file/limits.h"
#include "rules/file/sections.h"

/* ---- sources ---- */

struct source *source_create(void)
{
    struct source *source = calloc(1, sizeof *source);
    if (source != NULL) {
        source->references = 1;
    }
    return source;
}

void source_release(struct source *source)
{
    if (source != NULL && --source->references == 0) {
        arena_finish(&source->arena);
        free(source);
    }
}

int config_keep_source(struct config *config, struct source *source)
{
    if (array_append(&config->sources, &config->sources_count, sizeof source, &source)) {
        return 0;
    }
    source_release(source);
    return WEIR_ENOMEM;
}

void config_finish(struct config *config)
{
    for (size_t i = 0; i < config->limits_count; i++) {
        source_release(config->limits[i]->source);
    }
    free(config->limits);
    for (size_t i = 0; i < config->sources_count; i++) {
        source_release(config->sources[i]);
    }
    free(config->sources);
    *config = (struct config){0};
}

int config_consistency(const struct config *config, int given)
{
    if (given != CONSISTENCY_DEFAULT) {
        return given;
    }
    return config_has_store(config) ? CONSISTENCY_EXACT : CONSISTENCY_LOCAL;
}

bool config_has_store(const struct config *config)
{
    return config->store_place.line > 0 || config->fleet == FLEET_GIVEN;
}

bool config_is_shared(const struct config *config, const struct limit_config *limit)
{
    return config->fleet != FLEET_NONE && config_has_store(config) &&
           config_consistency(config, limit->consistency) != CONSISTENCY_LOCAL;
}

bool setting_is_local(const struct config *config, const struct limit_config *limit,
                      const struct setting *setting)
{
    return rate_kind(setting->rate) != RATE_COUNTS || !config_is_shared(config, limit);
}

/* ---- limits ---- */

static size_t find_limit(const struct config *config, struct weir_text name)
{
    size_t i = 0;
    while (i < config->limits_count && !text_equal(config->limits[i]->name, name)) {
        i++;
    }
    return i;
}

static int add_limit(struct config *config, struct limit_config *limit)
{
    if (!array_append(&config->limits, &config->limits_count, sizeof limit, &limit)) {
        return WEIR_ENOMEM;
    }
    limit->source->references++;
    return 0;
}

/* Reads a limit. Returns false if there are too many. */
static bool read_limit(struct reader *r, const struct node *node)
{
    struct limit_config *limit = limit_read(r, node);
    if (limit == NULL) {
        return true;
    }
    size_t same = find_limit(r->config, limit->name);
    if (same < r->config->limits_count) {
        const struct place *first = &r->config->limits[same]->place;
        problem(r->problems, node->place,
                "found a second limit '%.*s', expected another name; the first is at %s:%u",
                TEXT_ARGS(limit->name), first->file, first->line);
    } else if (r->config->limits_count == CONFIG_LIMITS_MAX) {
        problem(r->problems, node->place, "found too many limits, expected at most %d",
                CONFIG_LIMITS_MAX);
        return false;
    } else if (add_limit(r->config, limit) != 0) {
        r->source->arena.failed = true;
    }
    return true;
}

static void read_limits(struct reader *r, const struct field *f, const struct node *node,
                        void *value)
{
    (void)value;
    r->config->has_limits = true;
    if (node->kind != NODE_LIST) {
        r->config->limits_written++;
        unexpected(r, node, f->expects);
        return;
    }
    r->config->limits_written += node->count;
    for (size_t i = 0; i < node->count && read_limit(r, node->items[i]);) {
        i++;
    }
}

/* ---- the top of the file ---- */

static void read_version(struct reader *r, const struct field *f, const struct node *node,
                         void *value)
{
    (void)value;
    if (node->kind != NODE_SCALAR || !text_is(node->scalar, "1")) {
        unexpected(r, node, f->expects);
    }
}

static void show_version(const struct show *s, const void *value)
{
    (void)value;
    (void)fprintf(s->out, " %s", s->field->expects);
}

static const struct field_type type_version = {.read = read_version, .show = show_version};
static const struct field_type type_limits = {
    .read = read_limits, .show = limits_show, .shape = SHAPE_LIMITS};

#define CONFIG(member) offsetof(struct config, member)

static const struct field top_fields[] = {
    {"version", "1", "the version of this format", &type_version, 0, .unset = "1"},
    {"server", "a map", "where weir serve listens and what it may use", &type_server,
     CONFIG(server), .unset = "see below", .section = &section_server, .once = true},
    {"store", "a URL or a map", "the Redis or Valkey that a fleet shares", &type_store,
     CONFIG(store), .unset = "none", .section = &section_store, .once = true},
    {"adhoc", "off or a map", "the built-in limit of CL.THROTTLE", &type_adhoc, CONFIG(adhoc),
     .unset = "see below", .section = &section_adhoc, .once = true},
    {"envoy", "a map", "how calls of Envoy's rate limit service are decided", &type_map,
     CONFIG(envoy), .unset = "see below", .section = &section_envoy, .once = true},
    {"attributes", "a map of names and sources",
     "sources of the attributes that a request does not carry itself", &type_attributes,
     CONFIG(attributes), .unset = "none", .once = true},
    {"allow", "a list of conditions", "requests that are allowed and that no limit counts",
     &type_list, CONFIG(allow), .unset = "none"},
    {"block", "a list of conditions", "requests that are denied, even if they are in allow",
     &type_list, CONFIG(block), .unset = "none"},
    {"limits", "a list of limits", "the limits; their order matters within groups", &type_limits, 0,
     .required = true},
};

/* A folder needs `limits` in one of its files: config_check() reports that it is missing. */
const struct section section_top = SECTION("the file", NULL, top_fields);

void config_init(struct config *config, struct problems *problems)
{
    struct reader r = {.config = config, .problems = problems};
    *config = (struct config){.fleet = config->fleet,
                              .no_files = config->no_files,
                              .sandbox = config->sandbox,
                              .gateways = config->gateways};
    fields_init(&r, &section_server, &config->server);
    fields_init(&r, &section_store, &config->store);
    fields_init(&r, &section_adhoc, &config->adhoc);
    fields_init(&r, &section_envoy, &config->envoy);
    config->adhoc.place = (struct place){"rules", 0, 0};
    config->files_most = config->server.memory;
}

/* ---- one text ---- */

/* Makes the tables of a sandbox small: nobody has many keys there. */
static void shrink(struct config *config)
{
    for (size_t i = 0; i < config->limits_count; i++) {
        struct limit_config *limit = config->limits[i];
        limit->base.max_keys = min_u64(limit->base.max_keys, CONFIG_SANDBOX_KEYS);
        for (size_t j = 0; j < limit->tiers_count; j++) {
            struct setting *tier = &limit->tiers[j].setting;
            tier->max_keys = min_u64(tier->max_keys, CONFIG_SANDBOX_KEYS);
        }
    }
}

static int finish_reading(struct config *config, const char *name, struct problems *problems)
{
    bool failed = false;
    if (config->sandbox) {
        shrink(config);
    }
    for (size_t i = 0; i < config->sources_count; i++) {
        failed = failed || config->sources[i]->arena.failed;
    }
    return failed ? WEIR_ENOMEM : config_check(config, name, problems);
}

static struct weir_text folder_of(struct arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    return arena_text(arena,
                      (struct weir_text){path, slash != NULL ? (size_t)(slash - path) + 1 : 0});
}

/*
 * Takes from a text what sections before it need: server.memory, which bounds the files that they
 * name, and the attributes that are declared. If something is wrong with them, that is reported
 * when their sections are read.
 */
static void look_ahead(struct config *config, const struct node *root)
{
    const struct node *server = node_find(root, "server");
    const struct node *memory = server != NULL ? node_find(server, "memory") : NULL;
    struct weir_error error;
    uint64_t bytes;
    if (memory != NULL && memory->kind == NODE_SCALAR &&
        quantity_parse(&quantity_size, memory->scalar, "", &bytes, &error) == 0) {
        config->files_most = bytes;
    } else if (memory != NULL) {
        config->memory_is_wrong = true;
    }
    config->declared = config->declared != NULL ? config->declared : node_find(root, "attributes");
}

/* Converts a file for Envoy's reference server into weir's own format. */
static void convert(const struct config *config, struct source *source, struct problems *problems)
{
    unsigned before = problems->errors;
    const struct node *root = source->root;
    struct node *converted =
        envoy_convert(&source->arena, root, CONFIG_LIMITS_MAX + 1, &source->domain, problems);
    source->root = converted;
    source->damaged = source->damaged || problems->errors > before;
    for (size_t i = 0; i < config->sources_count; i++) {
        const struct source *other = config->sources[i];
        if (other != source && source->domain.len > 0 &&
            text_equal(other->domain, source->domain)) {
            problem(
                problems, node_find(root, "domain")->place,
                "found the domain '%.*s' a second time, expected it in one file; the first is %s",
                TEXT_CUT(source->domain, 64), other->root->place.file);
            if (converted != NULL) {
                converted->count = 0; /* so that its limits are not reported as second ones */
            }
        }
    }
}

/* Parses one text. The name is copied, because messages and limits refer to it. */
static int parse_text(struct config *config, const char *name, struct weir_text text,
                      struct problems *problems)
{
    struct source *source = source_create();
    if (source == NULL || config_keep_source(config, source) != 0) {
        return WEIR_ENOMEM;
    }
    struct weir_text own = arena_text(&source->arena, text_of(name));
    source->folder = folder_of(&source->arena, name);
    if (own.at == NULL || source->folder.at == NULL) {
        return WEIR_ENOMEM;
    }
    if (config->folder.at == NULL) {
        config->folder = source->folder;
    }
    unsigned before = problems->errors;
    source->root = document_read(&source->arena, own.at, text, problems);
    if (config->no_files && source->root != NULL && node_count(source->root) > CONFIG_TEXT_VALUES) {
        problem(problems, (struct place){own.at, 0, 0},
                "found more than %u values, including those of aliases, in a text that is sent: "
                "check it as a file",
                CONFIG_TEXT_VALUES);
        source->root = NULL;
    }
    source->damaged = problems->errors > before;
    if (source->root != NULL && envoy_is_file(source->root)) {
        convert(config, source, problems);
    } else if (source->root != NULL) {
        look_ahead(config, source->root);
    }
    return source->arena.failed ? WEIR_ENOMEM : 0;
}

/* Reads the sections of all texts, when they have been parsed. */
static int read_texts(struct config *config, const char *name, struct problems *problems)
{
    for (size_t i = 0; i < config->sources_count; i++) {
        struct source *source = config->sources[i];
        struct reader r = {config, source, problems, source->folder, config->no_files};
        if (source->root != NULL) {
            (void)fields_read(&r, &section_top, source->root, config);
        }
    }
    attributes_check(config, problems);
    for (size_t i = 0; config->limits_count == config->limits_written && i < config->limits_count;
         i++) { /* a limit that was refused may have the name */
        replaces_check(config, config->limits[i], problems);
    }
    if (config->gateways) {
        config_warn_undeclared(config, NULL, problems);
    }
    return finish_reading(config, name, problems);
}

int config_read_text(struct config *config, const char *name, struct weir_text text,
                     struct problems *problems)
{
    config_init(config, problems);
    int e = parse_text(config, name, text, problems);
    return e != 0 ? e : read_texts(config, name, problems);
}

/* ---- files and folders ---- */

struct file_reading {
    struct config *config;
    struct problems *problems;
};

static int parse_file(void *arg, const char *path)
{
    const struct file_reading *r = arg;
    struct arena arena = ARENA_INIT;
    struct weir_error error;
    struct weir_text text;
    int e = file_read(&arena, path, DOCUMENT_BYTES_MAX, &text, &error);
    if (e == 0) {
        e = parse_text(r->config, path, text, r->problems);
    } else if (e != WEIR_ENOMEM) {
        problem(r->problems, (struct place){path, 0, 0}, "%s", problem_without_path(&error, path));
        e = 0;
    }
    arena_finish(&arena);
    return e;
}

static int is_rule_file(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && text_ends(text_of(entry->d_name), ".yaml");
}

/* Compares bytes, because the order of limits must not depend on the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

int config_each_path(const char *list, config_file_fn fn, void *arg)
{
    char path[PATH_MAX];
    struct stat st;
    bool empty = list[strspn(list, ":")] == 0; /* there is no such file, and fn tells so */
    if (empty || strchr(list, ':') == NULL || stat(list, &st) == 0) {
        return fn(arg, list);
    }
    int e = 0;
    for (size_t n = 0; e == 0 && *list != 0; list += n + (list[n] == ':')) {
        n = strcspn(list, ":");
        (void)snprintf(path, sizeof path, "%.*s", (int)n, list);
        e = n > 0 ? fn(arg, path) : 0;
    }
    return e;
}

struct each_file {
    config_file_fn fn;
    void *arg;
};

static int each_file_of(void *each, const char *path)
{
    config_file_fn fn = ((const struct each_file *)each)->fn;
    void *arg = ((const struct each_file *)each)->arg;
    struct dirent **entries;
    struct stat st;
    char file[PATH_MAX];
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        return fn(arg, path);
    }
    int n = scandir(path, &entries, is_rule_file, by_name);
    if (n < 0) {
        return errno == ENOMEM ? WEIR_ENOMEM : WEIR_EACCES;
    }
    int e = n == 0 ? WEIR_ENOENT : 0;
    for (int i = 0; i < n; i++) {
        (void)snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
        e = e == 0 ? fn(arg, file) : e;
        free(entries[i]);
    }
    free(entries);
    return e;
}

int config_each_file(const char *list, config_file_fn fn, void *arg)
{
    return config_each_path(list, each_file_of, &(struct each_file){fn, arg});
}

/* Parses the files of one path of a list. */
static int parse_path(void *arg, const char *path)
{
    const struct file_reading *r = arg;
    int e = each_file_of(&(struct each_file){parse_file, arg}, path);
    if (e == WEIR_ENOENT || e == WEIR_EACCES) {
        problem(r->problems, (struct place){path, 0, 0},
                "found a folder %s, expected one with *.yaml files",
                e == WEIR_ENOENT ? "without *.yaml files" : "that cannot be read");
        e = 0;
    }
    return e;
}

int config_read(struct config *config, const char *path, struct problems *problems)
{
    struct file_reading r = {config, problems};
    config_init(config, problems);
    int e = config_each_path(path, parse_path, &r);
    return e != 0 ? e : read_texts(config, path, problems);
}

char *config_beside(const struct config *config, struct weir_text path)
{
    char *joined = NULL;
    bool absolute = path.len > 0 && path.at[0] == '/';
    int n = asprintf(&joined, "%.*s%.*s", absolute ? 0 : (int)config->folder.len, config->folder.at,
                     TEXT_ARGS(path));
    return n < 0 ? NULL : joined;
}

/* ---- one limit more or less ---- */

/* Shares everything but the limits. */
static int share_head(const struct config *config, struct config *head)
{
    *head = *config;
    head->sources = NULL;
    head->sources_count = 0;
    head->limits = NULL;
    head->limits_count = 0;
    int e = 0;
    for (size_t i = 0; e == 0 && i < config->sources_count; i++) {
        config->sources[i]->references++;
        e = config_keep_source(head, config->sources[i]);
    }
    return e;
}

/* Makes *next the same rules, sharing everything, without the limit at `without`. */
static int share(const struct config *config, size_t without, struct config *next)
{
    int e = share_head(config, next);
    for (size_t i = 0; e == 0 && i < config->limits_count; i++) {
        e = i == without ? 0 : add_limit(next, config->limits[i]);
    }
    return e;
}

int config_remove(const struct config *config, struct weir_text name, struct config *next)
{
    size_t at = find_limit(config, name);
    *next = (struct config){0};
    return at == config->limits_count ? WEIR_ENOLIMIT : share(config, at, next);
}

/* Moves the last limit to `to`, where the limit that it replaces was. */
static void move_last(struct config *config, size_t to)
{
    struct limit_config *last = config->limits[config->limits_count - 1];
    for (size_t i = config->limits_count - 1; i > to; i--) {
        config->limits[i] = config->limits[i - 1];
    }
    config->limits[to] = last;
}

int config_put(const struct config *config, struct weir_text yaml, struct config *next,
               struct problems *problems)
{
    static const char file[] = "limit";
    struct source *source = source_create();
    *next = (struct config){0};
    if (source == NULL) {
        return WEIR_ENOMEM;
    }
    struct reader r = {next, source, problems, config->folder, .no_files = true};
    struct node *node = document_read(&source->arena, file, yaml, problems);
    const struct node *name = node != NULL ? node_find(node, "name") : NULL;
    size_t at = find_limit(config, name != NULL ? name->scalar : TEXT(""));
    int e = share(config, at, next);
    size_t before = next->limits_count;
    if (e == 0 && node != NULL) {
        (void)read_limit(&r, node);
    }
    if (e != 0 || source->arena.failed) {
        e = WEIR_ENOMEM;
    } else if (next->limits_count == before) {
        e = WEIR_ERULES;
    } else {
        move_last(next, at);
        replaces_check(next, next->limits[at], problems);
        if (next->gateways) {
            config_warn_undeclared(next, next->limits[at], problems);
        }
        e = finish_reading(next, file, problems);
    }
    source_release(source);
    return e;
}
