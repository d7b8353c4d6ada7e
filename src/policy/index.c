/* Finding in an index; how it is laid out is told in policy/index_parts.h. */
#include "policy/index.h"

#include "policy/index_parts.h"
#include "policy/pattern.h"

static void set_bit(uint64_t *limits, uint32_t limit)
{
    limits[limit / 64] |= UINT64_C(1) << limit % 64;
}

static void set_bits(const struct index *index, struct list list, uint64_t *limits)
{
    while (list.limit != NONE) {
        set_bit(limits, list.limit);
        if (list.next == 0) {
            return;
        }
        list = index->more[list.next];
    }
}

void index_find_value(const struct index *index, unsigned attribute, struct text value,
                      uint64_t *limits)
{
    const struct slot *s = probe(index, VALUE, attribute, value, hash_text(index, value));
    if (s->tag != 0) {
        set_bits(index, s->found, limits);
    }
}

struct segment {
    uint64_t hash;
    struct text text;
};

/* The segments are cut and hashed once, as far as the walk comes. */
struct walk {
    const struct index *index;
    struct text path;
    uint64_t *limits;
    unsigned known;
    struct segment segments[INDEX_DEPTH];
};

/* Where a walk stands: before segment `i`, which begins at byte `at`. */
struct position {
    unsigned i;
    size_t at;
};

static bool at_end(const struct walk *w, struct position p)
{
    return p.at >= w->path.len;
}

static struct segment segment_of(struct walk *w, struct position p)
{
    if (p.i < w->known) {
        return w->segments[p.i];
    }
    struct segment s = {.text = cut_segment(w->path, p.at)};
    s.hash = hash_text(w->index, s.text);
    if (w->known < INDEX_DEPTH) {
        w->segments[w->known++] = s;
    }
    return s;
}

static struct position behind(struct position p, struct text segment)
{
    return (struct position){p.i + 1, p.at + segment.len + 1};
}

static void visit(struct walk *w, uint32_t number, struct position p);

/* What follows the last dot, and the dot; empty if there is none. */
static struct text extension_of(struct text segment)
{
    const char *dot = memrchr(segment.at, '.', segment.len);
    size_t before = dot != NULL ? (size_t)(dot - segment.at) : segment.len;
    return text_after(segment, before);
}

static void visit_child(struct walk *w, enum kind kind, uint32_t number, struct text text,
                        uint64_t hash, struct position next)
{
    const struct slot *s = probe(w->index, kind, number, text, hash);
    if (s->tag != 0) {
        visit(w, s->found.limit, next);
    }
}

/* Visits the children of a node to which the segment at p leads. */
static void step(struct walk *w, uint32_t number, struct position p)
{
    const struct node *node = &w->index->nodes[number];
    struct segment s = segment_of(w, p);
    struct position next = behind(p, s.text);
    if (node->literal != 0) {
        visit_child(w, LITERAL, number, s.text, s.hash, next);
    }
    if (node->extension != 0) {
        struct text extension = extension_of(s.text);
        if (extension.len != 0) {
            visit_child(w, EXTENSION, number, extension, hash_text(w->index, extension), next);
        }
    }
    if (node->star != 0) {
        visit(w, node->star, next);
    }
    for (uint32_t i = node->mixed; i != 0; i = w->index->mixed[i].next) {
        const struct mixed *m = &w->index->mixed[i];
        if (segment_match(text_at(w->index, m->at, m->len), s.text)) {
            visit(w, m->child, next);
        }
    }
}

static void compare_rest(struct walk *w, uint32_t first)
{
    for (uint32_t i = first; i != 0; i = w->index->rest[i].next) {
        const struct rest *r = &w->index->rest[i];
        if (path_pattern_match(text_at(w->index, r->at, r->len), w->path)) {
            set_bit(w->limits, r->limit);
        }
    }
}

/* The segments before p have led to this node. */
static void visit(struct walk *w, uint32_t number, struct position p)
{
    const struct node *node = &w->index->nodes[number];
    set_bits(w->index, node->tail, w->limits);
    compare_rest(w, node->rest);
    if (at_end(w, p)) {
        set_bits(w->index, node->here, w->limits);
        return;
    }
    step(w, number, p);
    if (node->any != 0) {
        for (struct position q = p; !at_end(w, q); q = behind(q, segment_of(w, q).text)) {
            step(w, node->any, q);
        }
    }
}

void index_find_path(const struct index *index, struct text path, uint64_t *limits)
{
    index_find_value(index, INDEX_PATH, path, limits);
    if (index->has_patterns) {
        struct walk w; /* not cleared: its segments take longer to clear than to walk */
        w.index = index;
        w.path = path;
        w.limits = limits;
        w.known = 0;
        visit(&w, 0, (struct position){0, 1});
    }
}
