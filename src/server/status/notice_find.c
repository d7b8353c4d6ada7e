#include "server/status/notice_find.h"

#include <assert.h>
#include <stdio.h>

#include "common/digits.h"
#include "common/remote.h"
#include "server/status/sentence.h"

/* Returns whether the limit denies: neither its rules nor the kill switch keep it from that. */
static bool is_enforced(const struct limit_numbers *l)
{
    return !l->shadow && l->switched == 0;
}

/* Returns whether the limit is worth naming: the built-in one is there, used or not. */
static bool is_used(const struct limit_numbers *l)
{
    const struct weir_stats *s = &l->stats;
    return strcmp(l->name, SERVER_ADHOC) != 0 ||
           s->allowed + s->denied + s->never + s->shadow_denied > 0;
}

/* ---- the store ---- */

bool notice_store_away(const struct numbers *n)
{
    return n->server->fleet.fleet != NULL && n->fleet.up == 0;
}

/* Puts what each shared limit does without the store: those that deny come first. */
static void put_failures(struct notice_view *v, const char *one_divided, const char *many_divided)
{
    struct phrase phrases[REMOTE_FAILURES] = {{.one = "denies all", .many = "deny all"},
                                              {.one = one_divided, .many = many_divided},
                                              {.one = "allows all", .many = "allow all"}};
    static const size_t places[REMOTE_FAILURES] = {
        [REMOTE_FAIL_CLOSED] = 0, [REMOTE_FAIL_LOCAL] = 1, [REMOTE_FAIL_OPEN] = 2};
    for (size_t i = 0; i < v->n->limits_count; i++) {
        const struct limit_numbers *l = &v->n->limits[i];
        if (l->remote && is_enforced(l) && is_used(l)) {
            phrase_add(&phrases[places[l->on_store_failure]], l->name);
        }
    }
    if (!sentence_put(v->text, phrases, REMOTE_FAILURES)) {
        buffer_put(v->text, TEXT("no limit that denies uses it"));
    }
}

static bool find_store_away(struct notice_view *v)
{
    char one[64];
    char many[64];
    unsigned long long nodes = v->n->fleet.nodes;
    if (!notice_store_away(v->n)) {
        return false;
    }
    if (nodes < 2) {
        put_failures(v, "is counted by this node alone", "are counted by this node alone");
    } else {
        (void)snprintf(one, sizeof one, "is divided by %llu nodes", nodes);
        (void)snprintf(many, sizeof many, "are divided by %llu nodes", nodes);
        put_failures(v, one, many);
    }
    v->why = v->n->fleet.why.text;
    return true;
}

static bool find_store_full(struct notice_view *v)
{
    buffer_put(v->text, TEXT("keys that it does not have are decided by this node, as on_full "
                             "says"));
    return v->n->fleet.full > 0;
}

/* Returns a round number that the percentage is above: a sentence that changed each second would be
 * read aloud each second. */
static unsigned above(double percent)
{
    static const unsigned steps[] = {90, 50, 20, 10, 5, 2};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (percent >= steps[i]) {
            return steps[i];
        }
    }
    return DEGRADED_PERCENT;
}

static bool find_degraded(struct notice_view *v)
{
    const struct troubles *t = v->troubles;
    struct phrase phrase = {.count = 0};
    double percent = troubles_degraded_percent(t, v->now_ns);
    for (size_t i = 0; i < t->count; i++) {
        if (trouble_is_near(&t->limits[i], TROUBLE_DEGRADED, v->now_ns)) {
            phrase_add(&phrase, t->limits[i].name);
        }
    }
    buffer_put(v->text, TEXT("at least "));
    buffer_put_u64(v->text, above(percent));
    buffer_put(v->text, TEXT(" % of the shared answers come without the store, those of "));
    phrase_put_names(v->text, &phrase);
    return phrase.count > 0 && percent >= DEGRADED_PERCENT && !notice_store_away(v->n);
}

/* ---- tables ---- */

/* The limits of `troubles` are those of the numbers, in the same order. A limit in shadow mode
 * denies no new key, nor does it matter that it lets one pass. */
static bool find_table_full(struct notice_view *v)
{
    const struct troubles *t = v->troubles;
    struct phrase phrases[] = {
        [TROUBLE_FULL_DENIED] = {.one = "denies new keys", .many = "deny new keys"},
        [TROUBLE_FULL_ALLOWED] = {.one = "allows new keys without a charge",
                                  .many = "allow new keys without a charge"},
        [TROUBLE_EVICTED] = {.one = "forgets keys in use", .many = "forget keys in use"},
        [TROUBLES] = {.one = "has no room for new keys", .many = "have no room for new keys"}};
    assert(t->count == 0 || t->count == v->n->limits_count);
    for (size_t i = 0; i < t->count; i++) {
        for (enum trouble which = 0; which <= TROUBLE_EVICTED; which++) {
            if (trouble_is_near(&t->limits[i], which, v->now_ns)) {
                bool told = which == TROUBLE_EVICTED || is_enforced(&v->n->limits[i]);
                phrase_add(&phrases[told ? (size_t)which : TROUBLES], t->limits[i].name);
            }
        }
    }
    return sentence_put(v->text, phrases, sizeof phrases / sizeof phrases[0]);
}

/* ---- what operators have done ---- */

static bool find_reload_failed(struct notice_view *v)
{
    buffer_put(v->text, text_of(v->reload->stays));
    v->why = v->reload->why;
    v->since_ns = v->reload->since_ns;
    return v->reload->is;
}

static bool find_kill_switch(struct notice_view *v)
{
    struct phrase phrase = {.one = "denies nothing", .many = "deny nothing"};
    bool all = v->n->shadow;
    for (size_t i = 0; i < v->n->limits_count; i++) {
        const struct limit_numbers *l = &v->n->limits[i];
        all = all && l->switched != 0;
        if (l->switched != 0 && is_used(l)) {
            phrase_add(&phrase, l->name);
        }
    }
    if (all) {
        buffer_put(v->text, TEXT("nothing is denied"));
        return true;
    }
    return sentence_put(v->text, &phrase, 1);
}

/* ---- certificates ---- */

/* Puts "in 3 days" or "in 5 hours". */
static void put_left(struct buffer *out, uint64_t left_ns)
{
    static const struct {
        uint64_t least; /* from here on in this unit */
        uint64_t unit;
        const char *one, *many;
    } units[] = {{36 * WEIR_HOUR, WEIR_DAY, " day", " days"}, {0, WEIR_HOUR, " hour", " hours"}};
    size_t i = left_ns < units[0].least;
    uint64_t count = (left_ns + units[i].unit / 2) / units[i].unit;
    buffer_put(out, TEXT("in "));
    buffer_put_u64(out, count);
    buffer_put(out, text_of(count == 1 ? units[i].one : units[i].many));
}

/* Puts "2026-11-22 at 13:40 UTC". */
static void put_minute(struct buffer *out, uint64_t unix_ns)
{
    char time[DIGITS_TIME_MAX];
    digits_time(unix_ns, time);
    struct weir_text whole = text_of(time);
    buffer_put(out, text_before(whole, 'T'));
    buffer_put(out, TEXT(" at "));
    buffer_put(out,
               (struct weir_text){text_after(whole, sizeof "2026-11-22").at, sizeof "13:40" - 1});
    buffer_put(out, TEXT(" UTC"));
}

/* `whose`: "that of the listeners"; ends_ns: 0 if there is no certificate. */
static bool find_certificate(struct notice_view *v, const char *whose, uint64_t ends_ns)
{
    buffer_put(v->text, text_of(whose));
    if (ends_ns > v->now_ns) {
        buffer_put(v->text, TEXT(" "));
        put_left(v->text, ends_ns - v->now_ns);
        buffer_put(v->text, TEXT(", on "));
    } else {
        buffer_put(v->text, TEXT(" has ended, on "));
    }
    put_minute(v->text, ends_ns);
    return ends_ns != 0 && (ends_ns <= v->now_ns || ends_ns - v->now_ns < CERTIFICATE_SOON_NS);
}

static bool find_own_certificate(struct notice_view *v)
{
    return find_certificate(v, "that of the listeners", v->n->certificate_ns);
}

static bool find_store_certificate(struct notice_view *v)
{
    return find_certificate(v, "that of this node for the store", v->n->fleet.certificate_ns);
}

const notice_find_fn notice_finds[NOTICES] = {
    [NOTICE_STORE_AWAY] = find_store_away,
    [NOTICE_CERTIFICATE] = find_own_certificate,
    [NOTICE_STORE_CERTIFICATE] = find_store_certificate,
    [NOTICE_RELOAD_FAILED] = find_reload_failed,
    [NOTICE_TABLE_FULL] = find_table_full,
    [NOTICE_STORE_FULL] = find_store_full,
    [NOTICE_DEGRADED] = find_degraded,
    [NOTICE_KILL_SWITCH] = find_kill_switch,
};
