#include "explore/world.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explore/wide.h"

#define KEY_BYTES 4
#define AT(seconds) ((seconds)*WEIR_SECOND)
/* Few, so that two blocks meet in a line. */
#define MAX_BLOCKS 4
#define BLOCK_LINES 2

static struct weir *limiter;
static struct world_spec world;
static uint32_t keys[KEYS_MAX]; /* KEY_BYTES each */
static unsigned leftovers;      /* prepared as if somebody had died */

/* What users change, and how it was when they began. */
struct part {
    void *memory;
    size_t bytes;
    void *copy;
};
enum { HEADER, BODY, THREADS, PARTS };
static struct part parts[PARTS];

struct weir *world_limiter(void)
{
    return limiter;
}

/* ---- making ---- */

static void keep_part(unsigned i, void *memory, size_t bytes)
{
    free(parts[i].copy);
    parts[i] = (struct part){memory, bytes, malloc(bytes)};
    assert(parts[i].copy != NULL);
    memcpy(parts[i].copy, memory, bytes);
}

void world_reset(void)
{
    for (unsigned i = 0; i < PARTS; i++) {
        memcpy(parts[i].memory, parts[i].copy, parts[i].bytes);
    }
}

/* Counts of threads are added to and never looked at. */
unsigned world_ranges(unsigned users, unsigned changes, struct range *ranges)
{
    struct region_header *head = limiter->head;
    uint64_t versions = min_u64(head->version + changes + 1, REGION_VERSIONS);
    size_t params = offsetof(struct region_header, spec) + versions * sizeof head->spec[0];
    size_t change = offsetof(struct region_header, change);
    unsigned n = 0;
    ranges[n++] = (struct range){&head->change, params - change, false};
    ranges[n++] = (struct range){&head->counts, sizeof head->counts, false};
    ranges[n++] = (struct range){parts[BODY].memory, parts[BODY].bytes, false};
    for (unsigned i = 0; i <= users; i++) {
        struct per_thread *own = &limiter->threads[i];
        ranges[n++] = (struct range){own, offsetof(struct per_thread, counts), false};
        ranges[n++] = (struct range){&own->counts, sizeof own->counts, true};
    }
    return n;
}

static bool in_ranges(const unsigned char *p, const struct range *ranges, unsigned count)
{
    bool inside = false;
    for (unsigned i = 0; i < count; i++) {
        const unsigned char *from = ranges[i].memory;
        inside |= p >= from && p < from + ranges[i].bytes;
    }
    return inside;
}

bool world_rest_untouched(const struct range *ranges, unsigned count)
{
    for (unsigned i = 0; i < PARTS; i++) {
        const unsigned char *now = parts[i].memory;
        const unsigned char *then = parts[i].copy;
        for (size_t j = 0; j < parts[i].bytes; j++) {
            if (now[j] != then[j] && !in_ranges(now + j, ranges, count)) {
                return false;
            }
        }
    }
    return true;
}

/* A limiter as anybody makes it, but with a known secret and a much smaller table. */
static bool make_limiter(void)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    o.algorithm = world.algorithm;
    o.on_full = world.on_full;
    o.count = world.algorithm == WEIR_SLIDING_LOG ? LOG_QUOTA : QUOTA;
    o.period_ns = AT(PERIOD_S);
    o.max_keys = 1;
    o.flags = WEIR_EXPLICIT_TIME;
    weir_close(limiter);
    if (weir_open(&limiter, &o, NULL) != 0) {
        return false;
    }
    struct table *t = &limiter->table;
    uint64_t max_keys = world.max_keys != 0 ? world.max_keys : world.lines * LINE_SLOTS;
    struct table_shape shape = {max_keys,        world.lines, world.stripes,
                                t->record_bytes, MAX_BLOCKS,  BLOCK_LINES};
    memset(&limiter->secret, 0, sizeof limiter->secret);
    limiter->ops = wide_ops(limiter->ops);
    table_attach(t, &shape, t->lines, t->counts, t->owner, t->debt_of, t->debt_arg);
    memset(t->lines, 0, table_bytes(&shape));
    return true;
}

static bool lives(const struct table *t, struct table_key key, int first, int second, int stripe)
{
    int line = (int)key.line;
    int other = (int)table_other_line(t, key.line, key.tag);
    int own = (int)(table_stripe(t, key.tag) - t->stripes);
    return (first == ANY || first == line) && (second == ANY || second == other) &&
           (stripe == ANY || stripe == own);
}

/* Tries one number after the other. */
static bool find_key(const struct home *home, uint32_t *number)
{
    const struct table *t = &limiter->table;
    for (uint32_t i = 0; i < 100000; i++) {
        uint32_t candidate = ++*number;
        struct hash h = limiter_hash(limiter, &candidate, KEY_BYTES);
        uint64_t block = blocks_home(&t->blocks, table_block_tag(t, h));
        if (lives(t, table_key(t, h), home->first, home->second, home->stripe) &&
            (home->block_line == ANY || home->block_line == (int)block)) {
            return true;
        }
    }
    return false;
}

/* Every user knows the parameters already: reading them again would only make runs longer. */
static void keep_all(void)
{
    struct weir_answer a;
    for (unsigned user = 0; user <= USERS_MAX; user++) {
        thread_number = user + 1;
        struct weir_question q = {.key = "x", .key_len = 1, .mode = WEIR_PEEK};
        (void)weir_ask_at(limiter, &q, AT(NOW_S), &a);
    }
    thread_number = 1;
    struct table_shape shape = {0,          world.lines, world.stripes, limiter->table.record_bytes,
                                MAX_BLOCKS, BLOCK_LINES};
    keep_part(HEADER, limiter->head, sizeof *limiter->head);
    keep_part(BODY, limiter->table.lines, table_bytes(&shape));
    keep_part(THREADS, limiter->threads, (USERS_MAX + 1) * sizeof *limiter->threads);
}

bool world_make(const struct world_spec *spec)
{
    uint32_t number = 0;
    (void)thread_slot();
    assert(thread_number == 1);
    world = *spec;
    leftovers = 0;
    bool made = make_limiter();
    for (unsigned i = 0; made && i < world.keys; i++) {
        made = find_key(&world.home[i], &number);
        keys[i] = number;
    }
    for (unsigned i = 0; made && world.prepare[i].kind != END; i++) {
        (void)world_do(world.prepare[i]);
    }
    if (made) {
        keep_all();
    }
    return made;
}

/* ---- doing ---- */

static uint64_t seen_of(const struct weir_answer *a)
{
    return (uint64_t)a->verdict | (uint64_t)a->flags << 4 | a->granted << 8 | a->remaining << 16 |
           a->quota << 24;
}

static uint64_t seen_code(long code)
{
    return (uint64_t)(code & 0xff);
}

static uint64_t ask(struct op op, int mode, uint64_t now_ns)
{
    struct weir_answer a;
    struct weir_question q = {
        .key = &keys[op.key], .key_len = KEY_BYTES, .cost = op.units, .mode = mode};
    int e = weir_ask_at(limiter, &q, now_ns, &a);
    return e != 0 ? seen_code(e) : seen_of(&a);
}

/* The way that most callers take; the others go through weir_ask_at(). */
static uint64_t check(struct op op, uint64_t now_ns)
{
    struct weir_answer a;
    int e = weir_check_at(limiter, &keys[op.key], KEY_BYTES, op.units, now_ns, &a);
    return e != 0 ? seen_code(e) : seen_of(&a);
}

static uint64_t change(uint64_t quota)
{
    bool bucket = world.algorithm == WEIR_TOKEN_BUCKET;
    return seen_code(weir_change(limiter, quota, bucket ? quota : 0, NULL));
}

/* As if somebody had died after M4 of moving the key from its other line to where it is. */
static void leave_over(unsigned i)
{
    const struct table *t = &limiter->table;
    struct table_key key = table_key(t, limiter_hash(limiter, &keys[i], KEY_BYTES));
    struct pair *slot = table_find(t, key);
    assert(slot != NULL);
    uint64_t line = (uint64_t)(slot - &t->lines[0].slot[0]) / LINE_SLOTS;
    struct line *other = &t->lines[table_other_line(t, line, key.tag)];
    for (unsigned j = LINE_SLOTS; j-- > 0;) { /* the last place: who looks for room finds another */
        if (other->slot[j].tag == 0) {
            other->slot[j] = (struct pair){key.tag | TAG_LEAVING, slot->word};
            leftovers++;
            return;
        }
    }
    assert(false);
}

uint64_t world_do(struct op op)
{
    const void *key = &keys[op.key];
    switch (op.kind) {
    case CHECK:
        return check(op, AT(NOW_S));
    case CHECK_OLD:
        return check(op, AT(OLD_S));
    case CHECK_LATE:
        return check(op, AT(LATE_S));
    case PEEK:
        return ask(op, WEIR_PEEK, AT(NOW_S));
    case REFUND:
        return seen_code(
            weir_refund_at(limiter, key, KEY_BYTES, op.units, AT(NOW_S), AT(NOW_S), NULL));
    case PENALIZE:
        return seen_code(weir_penalize_at(limiter, key, KEY_BYTES, op.units, AT(NOW_S), NULL));
    case BLOCK:
        return seen_code(weir_block_at(limiter, key, KEY_BYTES, AT(NOW_S + 10), AT(NOW_S)));
    case UNBLOCK:
        return seen_code(weir_unblock(limiter, key, KEY_BYTES));
    case RESET: /* whether it was there is nobody's business: a fresh key may be swept */
        return weir_reset(limiter, key, KEY_BYTES) < 0;
    case CHANGE:
        return change(op.units);
    case SWEEP:
        return weir_sweep_at(limiter, op.units, AT(NOW_S)) < 0;
    case SWEEP_LATE:
        return weir_sweep_at(limiter, op.units, AT(LATE_S)) < 0;
    case LEFTOVER:
        leave_over(op.key);
        return 0;
    default:
        return 0;
    }
}

void world_survey(uint64_t *seen)
{
    for (unsigned i = 0; i < world.keys; i++) {
        seen[i] = ask((struct op){PEEK, (unsigned char)i, 0}, WEIR_PEEK, AT(NOW_S));
    }
}

/* ---- judging ---- */

static struct pair *slot_at(unsigned i)
{
    return &limiter->table.lines[i / LINE_SLOTS].slot[i % LINE_SLOTS];
}

/* How often each form of a key is there. */
struct forms {
    unsigned clean, leaving, arriving;
};

static struct forms forms_of(uint64_t clean)
{
    struct forms f = {0, 0, 0};
    for (unsigned i = 0; i < world.lines * LINE_SLOTS; i++) {
        uint64_t tag = slot_at(i)->tag;
        f.clean += tag == clean;
        f.leaving += tag == (clean | TAG_LEAVING);
        f.arriving += tag == (clean | TAG_ARRIVING);
    }
    return f;
}

const char *world_check_states(void)
{
    for (unsigned i = 0; i < world.lines * LINE_SLOTS; i++) {
        uint64_t tag = slot_at(i)->tag;
        if (tag == 0) {
            continue;
        }
        struct forms f = forms_of(tag & ~TAG_MARKS);
        if (f.clean > 1 || f.leaving > 1 || f.arriving > 1) {
            return "a key is there twice";
        }
        if (f.arriving == 1 && (f.leaving == 0 || f.clean == 1)) {
            return "a copy without its original, or beside a complete one";
        }
    }
    return NULL;
}

void world_changed(const void *granule)
{
    const unsigned char *p = granule;
    const unsigned char *lines = (const void *)limiter->table.lines;
    if (p >= lines && p < lines + world.lines * sizeof(struct line)) {
        const char *wrong = world_check_states();
        if (wrong != NULL) {
            scheduler_fail(wrong);
        }
    }
}

/* How many of the table's blocks have this tag; any at all with 0. */
static unsigned blocks_with(uint64_t tag)
{
    unsigned found = 0;
    for (unsigned i = 0; i < BLOCK_LINES * BLOCK_LINE_PLACES; i++) {
        const struct block_line *line = &limiter->table.blocks.lines[i / BLOCK_LINE_PLACES];
        uint64_t here = line->block[i % BLOCK_LINE_PLACES].tag;
        found += here != 0 && (tag == 0 || here == tag);
    }
    return found;
}

static const char *check_counts(unsigned deaths)
{
    uint64_t all = 0;
    for (unsigned i = 0; i < world.lines * LINE_SLOTS; i++) {
        all += slot_at(i)->tag != 0;
    }
    int64_t key_error = (int64_t)(limiter->table.counts->keys - all);
    int64_t block_error = (int64_t)(limiter->table.counts->blocks.count - blocks_with(0));
    if (key_error < -(int64_t)deaths || key_error > (int64_t)deaths) {
        return "the count of keys is wrong";
    }
    if (block_error < -(int64_t)deaths || block_error > (int64_t)deaths) {
        return "the count of blocks is wrong";
    }
    for (unsigned i = 0; i < world.keys; i++) {
        struct hash h = limiter_hash(limiter, &keys[i], KEY_BYTES);
        if (blocks_with(table_block_tag(&limiter->table, h)) > 1) {
            return "a block is there twice";
        }
    }
    return NULL;
}

/* A survivor works on: looks at every key, sweeps, looks again. */
const char *world_check_end(unsigned dead)
{
    uint64_t before[KEYS_MAX];
    uint64_t after[KEYS_MAX];
    unsigned deaths = leftovers + (unsigned)__builtin_popcount(dead);
    const char *wrong = deaths == 0 ? check_counts(0) : NULL;
    world_survey(before);
    (void)weir_sweep_at(limiter, world.lines, AT(NOW_S));
    world_survey(after);
    if (memcmp(before, after, world.keys * sizeof *before) != 0) {
        wrong = "a sweep has changed what a key may do";
    }
    for (unsigned i = 0; i < world.lines * LINE_SLOTS; i++) {
        if ((slot_at(i)->tag & TAG_MARKS) != 0) {
            wrong = "a mark is left after everybody has ended and a survivor has swept";
        }
    }
    wrong = wrong != NULL ? wrong : world_check_states();
    return wrong != NULL ? wrong : check_counts(deaths);
}

/* ---- for people ---- */

void world_name(const void *address, char *text, unsigned bytes)
{
    const unsigned char *p = address;
    const struct table *t = &limiter->table;
    const unsigned char *body = (const void *)t->lines;
    const struct region_header *h = limiter->head;
    if (p >= body && p < (const unsigned char *)t->stripes) {
        snprintf(text, bytes, "slot%u.%u%s", (unsigned)((p - body) / 64),
                 (unsigned)((p - body) % 64 / 16), (p - body) % 16 != 0 ? "w" : "");
    } else if (p >= (const unsigned char *)t->blocks.lines && p < t->records) {
        snprintf(text, bytes, "block%u", (unsigned)(p - (unsigned char *)t->blocks.lines) / 16);
    } else if (p >= (const unsigned char *)t->stripes && p < t->records) {
        snprintf(text, bytes, "stripe%u", (unsigned)((p - (unsigned char *)t->stripes) / 64));
    } else if (p >= t->records && p < body + parts[BODY].bytes) {
        unsigned i = (unsigned)((p - t->records) / t->record_bytes);
        snprintf(text, bytes, "record%u.%u", i / LINE_SLOTS, i % LINE_SLOTS);
    } else if (address == &h->version || address == &h->change) {
        snprintf(text, bytes, address == &h->version ? "version" : "change-lock");
    } else if (address == &h->counts.keys || address == &h->counts.blocks.count) {
        snprintf(text, bytes, address == &h->counts.keys ? "keys" : "blocks");
    } else if (address == &h->counts.blocks.last_end || address == &h->counts.blocks.lock) {
        snprintf(text, bytes, address == &h->counts.blocks.lock ? "blocks-lock" : "last-end");
    } else {
        snprintf(text, bytes, "elsewhere");
    }
}

void world_name_op(struct op op, char *text, unsigned bytes)
{
    static const char *names[] = {"end",      "check",      "check-old", "peek",      "refund",
                                  "penalize", "block",      "unblock",   "reset",     "change",
                                  "sweep",    "sweep-late", "leftover",  "check-late"};
    snprintf(text, bytes, "%s(key %u, %u)", names[op.kind], op.key, op.units);
}

static int key_number(uint64_t tag)
{
    for (unsigned i = 0; i < world.keys; i++) {
        struct hash h = limiter_hash(limiter, &keys[i], KEY_BYTES);
        if (table_key(&limiter->table, h).tag == (tag & ~TAG_MARKS)) {
            return (int)i;
        }
    }
    return -1;
}

void world_print(void)
{
    for (unsigned i = 0; i < world.lines * LINE_SLOTS; i++) {
        uint64_t tag = slot_at(i)->tag;
        printf("%s", i % LINE_SLOTS == 0 ? "\n    line:" : "");
        if (tag == 0) {
            printf("  -");
        } else {
            printf("  %d%s%s", key_number(tag), (tag & TAG_LEAVING) != 0 ? "*" : "",
                   (tag & TAG_ARRIVING) != 0 ? "^" : "");
        }
    }
    printf("\n");
}
