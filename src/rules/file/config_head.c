/* What stays of a config without its limits: some settings, and the files that it names. */
#include "rules/file/fields.h"
#include "rules/yaml/document.h"

/* ---- settings ---- */

/* Sections that take effect when the server starts. A reload compares them. */
static const char *const sections[] = {"server", "store", "adhoc", "envoy"};

#define SECTIONS (sizeof sections / sizeof sections[0])

/* Returns a copy with everything below it; NULL without memory. Its depth is bounded by
 * DOCUMENT_DEPTH_MAX. */
static struct node *copy_node(struct arena *arena, const char *file, const struct node *from)
{
    struct node *to = arena_take(arena, sizeof *to);
    if (to == NULL) {
        return NULL;
    }
    *to = *from;
    to->place.file = file;
    to->scalar = arena_text(arena, from->scalar);
    to->items = arena_array(arena, from->count, sizeof *to->items);
    to->keys = from->kind == NODE_MAP ? arena_array(arena, from->count, sizeof *to->keys) : NULL;
    for (size_t i = 0; !arena->failed && i < from->count; i++) {
        to->items[i] = copy_node(arena, file, from->items[i]);
        if (to->keys != NULL) {
            to->keys[i] = copy_node(arena, file, from->keys[i]);
        }
    }
    return arena->failed ? NULL : to;
}

/* Reads the sections of a text that stay. The text was good, so there is nothing to report. */
static void read_sections(struct config *head, struct source *source, const struct node *root)
{
    struct node *keys[SECTIONS];
    struct node *items[SECTIONS];
    struct problems problems = {0};
    const char *file = arena_text(&source->arena, text_of(root->place.file)).at;
    struct node top = {
        .kind = NODE_MAP, .place = {file, 1, 1}, .items = items, .keys = keys, .count = 0};
    for (size_t i = 0; i < root->count && file != NULL; i++) {
        for (size_t j = 0; j < SECTIONS && top.count < SECTIONS; j++) {
            if (text_is(root->keys[i]->scalar, sections[j])) {
                keys[top.count] = copy_node(&source->arena, file, root->keys[i]);
                items[top.count++] = copy_node(&source->arena, file, root->items[i]);
            }
        }
    }
    if (!source->arena.failed) {
        struct reader r = {head, source, &problems, source->folder, head->no_files};
        (void)fields_read(&r, &section_top, &top, head);
    }
    problems_finish(&problems);
}

int config_read_head(const struct config *config, struct config *head)
{
    struct problems problems = {0};
    struct source *source = source_create();
    *head = (struct config){
        .fleet = config->fleet, .no_files = config->no_files, .sandbox = config->sandbox};
    config_init(head, &problems);
    problems_finish(&problems);
    if (source == NULL || config_keep_source(head, source) != 0) {
        return WEIR_ENOMEM;
    }
    source->folder = arena_text(&source->arena, config->folder);
    head->folder = source->folder;
    for (size_t i = 0; i < config->sources_count; i++) {
        const struct node *root = config->sources[i]->root;
        if (root != NULL && root->kind == NODE_MAP) {
            read_sections(head, source, root);
        }
    }
    return source->arena.failed ? WEIR_ENOMEM : 0;
}

/* ---- files ---- */

static void copy_file(struct source *source, const struct source_file *from)
{
    struct source_file *to = arena_take(&source->arena, sizeof *to);
    if (to != NULL) {
        *to = (struct source_file){.path = arena_text(&source->arena, text_of(from->path)).at,
                                   .was_read = from->was_read,
                                   .hash = from->hash,
                                   .next = source->files};
        source->files = to;
    }
}

void config_keep_files(struct config *config)
{
    struct config files = {0};
    struct source *source = source_create();
    if (source != NULL && config_keep_source(&files, source) == 0) {
        for (size_t i = 0; i < config->sources_count; i++) {
            const struct source_file *file = config->sources[i]->files;
            for (; file != NULL; file = file->next) {
                copy_file(source, file);
            }
        }
        if (source->arena.failed) {
            config_finish(&files);
        }
    }
    config_finish(config);
    *config = files;
}
