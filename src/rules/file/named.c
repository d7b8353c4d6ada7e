#include "rules/file/named.h"

#include "rules/file/files.h"

/*
 * Returns the terminated path, relative paths starting at the rule file's folder. NULL: out of
 * memory.
 */
static const char *path_from(struct reader *r, struct text text)
{
    bool absolute = text.len > 0 && text.at[0] == '/';
    return arena_format(&r->source->arena, "%.*s%.*s", absolute ? 0 : (int)r->folder.len,
                        r->folder.at, TEXT_ARGS(text));
}

/* Adds the file to the source's list, for callers that watch the files of the rules. */
static void note(struct reader *r, const char *path, struct text content)
{
    struct source_file *file = arena_take(&r->source->arena, sizeof *file);
    if (file != NULL) {
        *file = (struct source_file){path, content, r->source->files};
        r->source->files = file;
    }
}

struct named_file *named_file(struct reader *r, const struct node *node, struct text name)
{
    struct weir_error error;
    struct arena *arena = &r->source->arena;
    const char *path = path_from(r, name);
    struct named_file *file = r->files;
    while (path != NULL && file != NULL && strcmp(file->path, path) != 0) {
        file = file->next;
    }
    if (path == NULL || file != NULL) {
        return path == NULL ? NULL : file;
    }
    file = arena_take(arena, sizeof *file);
    if (file == NULL) {
        return NULL;
    }
    if (file_read(arena, path, CONFIG_FILE_MAX, &file->content, &error) != 0) {
        problem(r->problems, node->place, "%s", error.text);
        note(r, path, (struct text){NULL, 0});
        return NULL;
    }
    note(r, path, file->content);
    file->path = path;
    file->next = r->files;
    r->files = file;
    return file;
}

const struct named_values *named_values_find(const struct named_file *file,
                                             enum attribute_kind kind)
{
    const struct named_values *v = file->values;
    while (v != NULL && v->kind != kind) {
        v = v->next;
    }
    return v;
}

const struct named_values *named_values_keep(struct reader *r, struct named_file *file,
                                             enum attribute_kind kind, struct value *values,
                                             size_t count)
{
    struct named_values *v = arena_take(&r->source->arena, sizeof *v);
    if (v != NULL) {
        *v = (struct named_values){kind, values, count, file->values};
        file->values = v;
    }
    return v;
}
