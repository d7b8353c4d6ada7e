#include "rules/file/show.h"

#include <inttypes.h>

#include "common/utf8.h"
#include "rules/file/adhoc.h"
#include "rules/file/limits.h"
#include "rules/file/sections.h"

/* ---- scalars ---- */

static bool is_plain(struct text text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '_' || c == '/' || c == '.' || (i > 0 && c == '-');
        if (!good) {
            return false;
        }
    }
    return text.len > 0;
}

/* True if all characters may appear between single quotes. */
static bool is_visible(struct text text)
{
    while (text.len > 0) {
        uint32_t c;
        size_t bytes = utf8_next(text, &c);
        if (bytes == 0 || !utf8_visible(c)) {
            return false;
        }
        text = text_after(text, bytes);
    }
    return true;
}

/* Writes the text as it must appear between double quotes. Texts of a YAML file are UTF-8. */
static void put_escaped(FILE *out, struct text text)
{
    while (text.len > 0) {
        uint32_t c = 0xfffd;
        size_t bytes = utf8_next(text, &c);
        if (c == '"' || c == '\\') {
            (void)fprintf(out, "\\%c", (int)c);
        } else if (utf8_visible(c)) {
            (void)fwrite(text.at, 1, bytes, out);
        } else if (c < 0x100) {
            (void)fprintf(out, "\\x%02x", c);
        } else {
            (void)fprintf(out, c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
        }
        text = text_after(text, bytes > 0 ? bytes : 1);
    }
}

/* Writes the text as a YAML scalar, with quotes only if it needs them. */
static void put_scalar(FILE *out, struct text text)
{
    if (is_plain(text)) {
        (void)fwrite(text.at, 1, text.len, out);
    } else if (!is_visible(text)) {
        (void)fputc('"', out);
        put_escaped(out, text);
        (void)fputc('"', out);
    } else {
        (void)fputc('\'', out);
        for (size_t i = 0; i < text.len; i++) {
            (void)fputs(text.at[i] == '\'' ? "'" : "", out);
            (void)fputc(text.at[i], out);
        }
        (void)fputc('\'', out);
    }
}

static void put_text(FILE *out, const char *indent, const char *name, struct text text)
{
    if (text.len > 0) {
        (void)fprintf(out, "%s%s: ", indent, name);
        put_scalar(out, text);
        (void)fputc('\n', out);
    }
}

static void put_list(FILE *out, const struct texts *texts)
{
    (void)fputc('[', out);
    for (size_t i = 0; i < texts->count; i++) {
        (void)fputs(i > 0 ? ", " : "", out);
        put_scalar(out, texts->at[i]);
    }
    (void)fputc(']', out);
}

/* Writes the exact number and, for people, the same with three digits and a unit. */
static void put_bytes(uint64_t bytes, FILE *out)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB"};
    double shown = (double)bytes;
    size_t unit = 0;
    while (shown >= 1000 && unit + 1 < sizeof units / sizeof units[0]) {
        shown /= 1000;
        unit++;
    }
    (void)fprintf(out, "%" PRIu64 " bytes", bytes);
    if (unit > 0) {
        (void)fprintf(out, " (%.3g %s)", shown, units[unit]);
    }
}

/* ---- sections ---- */

static void show_trusted(const struct server_config *server, FILE *out)
{
    char text[ADDRESS_MAX + 4];
    if (!server->trusted_given) {
        (void)fputs("  trusted_proxies: [127.0.0.0/8, '::1/128']\n", out);
        return;
    }
    (void)fputs("  trusted_proxies: [", out);
    for (size_t i = 0; i < server->trusted_count; i++) {
        (void)fputs(i > 0 ? ", " : "", out);
        put_scalar(out, text_of(cidr_print(&server->trusted[i], text)));
    }
    (void)fputs("]\n", out);
}

static void show_server(const struct server_config *server, FILE *out)
{
    char size[QUANTITY_MAX];
    (void)fputs("server:\n", out);
    put_text(out, "  ", "http", server->http);
    put_text(out, "  ", "resp", server->resp);
    put_text(out, "  ", "admin", server->admin);
    put_text(out, "  ", "state", server->state);
    put_text(out, "  ", "check_secrets", server->check_secrets);
    put_text(out, "  ", "admin_secrets", server->admin_secrets);
    (void)fprintf(out, "  memory: %s\n", size_print(server->memory, size));
    show_trusted(server, out);
    (void)fprintf(out, "  headers: %s\n", section_headers_names[server->headers]);
}

/* Returns where the hosts begin: after "//" and after the last '@', if there is one. */
static size_t hosts_at(struct text url)
{
    size_t scheme = 0;
    while (scheme + 2 <= url.len && memcmp(url.at + scheme, "//", 2) != 0) {
        scheme++;
    }
    size_t at = url.len;
    while (at > scheme && url.at[at - 1] != '@') {
        at--;
    }
    return at > scheme + 2 ? at : scheme + 2;
}

/*
 * Writes the URL without its query, and with three stars for its user and password:
 * "redis://user:secret@host/0?password=secret" loses both secrets.
 */
static void show_url(struct arena *arena, struct text url, FILE *out)
{
    size_t hosts = hosts_at(url);
    size_t scheme = (size_t)((const char *)memchr(url.at, '/', url.len) - url.at) + 2;
    struct text rest = text_after(url, hosts);
    const char *query = memchr(rest.at, '?', rest.len);
    rest.len = query != NULL ? (size_t)(query - rest.at) : rest.len;
    const char *shown = arena_format(arena, "%.*s%s%.*s", (int)scheme, url.at,
                                     hosts > scheme ? "***@" : "", TEXT_ARGS(rest));
    if (shown != NULL) {
        put_text(out, "  ", "url", text_of(shown));
    }
}

static void show_store(const struct store_config *store, FILE *out)
{
    char text[QUANTITY_MAX];
    if (store->url.len == 0) {
        return;
    }
    (void)fputs("store:\n", out);
    struct arena arena = ARENA_INIT;
    show_url(&arena, store->url, out);
    arena_finish(&arena);
    put_text(out, "  ", "password_file", store->password_file);
    put_text(out, "  ", "user", store->user);
    put_text(out, "  ", "sentinel_password_file", store->sentinel_password_file);
    put_text(out, "  ", "sentinel_user", store->sentinel_user);
    put_text(out, "  ", "prefix", store->prefix);
    (void)fprintf(out, "  deadline: %s\n", duration_print(store->deadline_ns, text));
    (void)fprintf(out, "  fleet_size: %s\n",
                  store->fleet_size == 0 ? "auto" : count_print(store->fleet_size, text));
}

static void show_adhoc(const struct config *config, FILE *out)
{
    const struct adhoc_config *adhoc = &config->adhoc;
    struct problems quiet = {0};
    char text[QUANTITY_MAX];
    if (adhoc->off) {
        (void)fputs("adhoc: off\n", out);
        return;
    }
    (void)fprintf(out, "adhoc: {max_keys: %s, on_full: %s, consistency: local} # ",
                  count_print(adhoc->max_keys, text), limit_on_full_names[adhoc->on_full]);
    put_bytes(adhoc_bytes(adhoc, &quiet), out);
    (void)fputc('\n', out);
}

static void show_attributes(const struct config *config, FILE *out)
{
    (void)fputs(config->attributes_count > 0 ? "attributes:\n" : "", out);
    for (size_t i = 0; i < config->attributes_count; i++) {
        const struct attribute_config *a = &config->attributes[i];
        (void)fprintf(out, "  %.*s: [", TEXT_ARGS(a->name));
        for (size_t j = 0; j < a->count; j++) {
            (void)fputs(j > 0 ? ", " : "", out);
            put_scalar(out, a->sources[j].written);
        }
        (void)fputs("]\n", out);
    }
}

static void show_conditions(const struct conditions *conditions, FILE *out)
{
    (void)fputc('{', out);
    for (size_t i = 0; i < conditions->count; i++) {
        const struct condition *c = &conditions->at[i];
        (void)fprintf(out, "%s%.*s: ", i > 0 ? ", " : "", TEXT_ARGS(c->attribute));
        put_list(out, &c->written);
    }
    (void)fputs("}\n", out);
}

static void show_list(const char *name, const struct list_config *list, FILE *out)
{
    if (list->count > 0) {
        (void)fprintf(out, "%s:\n", name);
    }
    for (size_t i = 0; i < list->count; i++) {
        (void)fputs("  - ", out);
        show_conditions(&list->entries[i], out);
    }
}

/* ---- limits ---- */

static void show_numbers(const struct limit_config *limit, const struct setting *setting,
                         const char *separator, FILE *out)
{
    char text[QUANTITY_MAX];
    (void)fprintf(out, "rate: %s", rate_print(setting->rate, text));
    if (limit->algorithm == WEIR_TOKEN_BUCKET) {
        (void)fprintf(out, "%sburst: %s", separator, count_print(setting->burst, text));
    } else if (limit->algorithm == WEIR_LEAKY_BUCKET) {
        (void)fprintf(out, "%squeue: %s", separator, count_print(setting->burst, text));
    }
    if (limit->key_parts > 0) {
        (void)fprintf(out, "%smax_keys: %s", separator, count_print(setting->max_keys, text));
    }
}

/*
 * Writes the size of the setting's table as a comment that ends a line. Limits in the store have no
 * table here.
 */
static void show_bytes(const struct config *config, const struct limit_config *limit,
                       const struct setting *setting, FILE *out)
{
    struct weir_options options;
    uint64_t bytes = 0;
    if (config_is_shared(config, limit)) {
        return;
    }
    config_options(limit, setting, &options);
    (void)weir_size(&options, &bytes, NULL);
    (void)fputs(" # ", out);
    put_bytes(bytes, out);
}

static void show_key(const struct limit_config *limit, FILE *out)
{
    (void)fputs("    key: [", out);
    for (size_t i = 0; i < limit->key_parts; i++) {
        const struct texts *alternatives = &limit->key[i].alternatives;
        const char *quote = alternatives->count > 1 ? "'" : "";
        (void)fprintf(out, "%s%s", i > 0 ? ", " : "", quote);
        for (size_t j = 0; j < alternatives->count; j++) {
            (void)fprintf(out, "%s%.*s", j > 0 ? "|" : "", TEXT_ARGS(alternatives->at[j]));
        }
        (void)fputs(quote, out);
    }
    (void)fputs("]\n", out);
}

static void show_tiers(const struct config *config, const struct limit_config *limit, FILE *out)
{
    if (limit->tiers_count == 0) {
        return;
    }
    (void)fputs("    tiers:\n", out);
    put_text(out, "      ", "by", limit->tier_by);
    put_text(out, "      ", "default", limit->tier_default);
    for (size_t i = 0; i < limit->tiers_count; i++) {
        (void)fprintf(out, "      %.*s: {", TEXT_ARGS(limit->tiers[i].name));
        show_numbers(limit, &limit->tiers[i].setting, ", ", out);
        (void)fputs("}", out);
        show_bytes(config, limit, &limit->tiers[i].setting, out);
        (void)fputc('\n', out);
    }
}

static void show_overrides(const struct config *config, const struct limit_config *limit, FILE *out)
{
    const struct overrides *o = &limit->overrides;
    struct limit_config only = *limit;
    struct problems quiet = {0};
    if (o->by.len == 0) {
        return;
    }
    only.tiers_count = 0;
    only.tier_default = TEXT("-"); /* do not count the limit's own table */
    (void)fprintf(out, "    overrides: {by: %.*s, file: ", TEXT_ARGS(o->by));
    put_scalar(out, o->file);
    (void)fprintf(out, "} # %zu values, %zu different rates", text_map_count(o->values),
                  o->settings_count);
    if (!config_is_shared(config, limit)) {
        (void)fputs(", ", out);
        put_bytes(limit_bytes(&only, &quiet), out);
    }
    (void)fputc('\n', out);
}

/*
 * Writes how nodes share the limit. Keys that only matter to shared limits are left out of others.
 */
static void show_sharing(const struct config *config, const struct limit_config *limit,
                         show_note_fn note, FILE *out)
{
    char text[QUANTITY_MAX];
    char said[SHOW_NOTE_MAX];
    int consistency = config_consistency(config, limit->consistency);
    bool noted = note != NULL && note(config, limit, said);
    (void)fprintf(out, "    on_store_failure: %s\n", limit_failure_names[limit->on_store_failure]);
    (void)fprintf(out, "    consistency: %s%s%s\n", limit_consistency_names[consistency],
                  noted ? " # " : "", noted ? said : "");
    if (consistency == CONSISTENCY_LOCAL) {
        return;
    }
    if (limit->shard_by.count > 0) {
        (void)fputs("    shard_by: ", out);
        put_list(out, &limit->shard_by);
        (void)fputc('\n', out);
    }
    (void)fprintf(out, "    deny_cache: %s\n",
                  limit->deny_cache_ns == 0 ? "off" : duration_print(limit->deny_cache_ns, text));
    if (consistency == CONSISTENCY_SYNCED) {
        (void)fprintf(out, "    sync: %s\n", duration_print(limit->sync_ns, text));
    }
}

static void show_choices(const struct limit_config *limit, FILE *out)
{
    if (limit->max_blocks != 0) {
        char text[QUANTITY_MAX];
        (void)fprintf(out, "    max_blocks: %s\n", count_print(limit->max_blocks, text));
    }
    (void)fprintf(out, "    on_full: %s\n", limit_on_full_names[limit->on_full]);
    (void)fprintf(out, "    on_missing: %s\n", limit_on_missing_names[limit->on_missing]);
    if (limit->algorithm == WEIR_FIXED_WINDOW) {
        (void)fprintf(out, "    align: %s\n", limit_align_names[limit->align]);
    }
    (void)fprintf(out, "    shadow: %s\n", limit->shadow ? "true" : "false");
    (void)fprintf(out, "    retry_jitter: %g%%\n", limit->retry_jitter / 100.0);
    (void)fprintf(out, "    ipv4_prefix: %u\n    ipv6_prefix: %u\n", limit->ipv4_prefix,
                  limit->ipv6_prefix);
}

static void show_cost(const struct limit_config *limit, FILE *out)
{
    if (limit->cost_attribute.len > 0) {
        (void)fprintf(out, "    cost: 'attribute:%.*s'\n", TEXT_ARGS(limit->cost_attribute));
    } else if (limit->cost > 0) {
        (void)fprintf(out, "    cost: %" PRIu64 "\n", limit->cost);
    }
}

static void show_limit(const struct config *config, const struct limit_config *limit,
                       show_note_fn note, FILE *out)
{
    struct problems quiet = {0};
    (void)fputs("  # ", out);
    if (config_is_shared(config, limit)) {
        (void)fputs("in the store", out);
    } else {
        put_bytes(limit_bytes(limit, &quiet), out);
    }
    (void)fputs("\n  - ", out);
    put_text(out, "", "name", limit->name);
    if (limit->when.count > 0) {
        (void)fputs("    when: ", out);
        show_conditions(&limit->when, out);
    }
    if (limit->unless.count > 0) {
        (void)fputs("    unless: ", out);
        show_conditions(&limit->unless, out);
    }
    show_key(limit, out);
    (void)fprintf(out, "    algorithm: %s\n    ", weir_algorithm_name(limit->algorithm));
    show_numbers(limit, &limit->base, "\n    ", out);
    (void)fputc('\n', out);
    show_cost(limit, out);
    show_tiers(config, limit, out);
    show_overrides(config, limit, out);
    put_text(out, "    ", "group", limit->group);
    show_sharing(config, limit, note, out);
    show_choices(limit, out);
}

void config_show(const struct config *config, show_note_fn note, FILE *out)
{
    struct problems quiet = {0};
    uint64_t sum = adhoc_bytes(&config->adhoc, &quiet);
    (void)fputs("version: 1\n", out);
    show_server(&config->server, out);
    show_store(&config->store, out);
    show_adhoc(config, out);
    show_attributes(config, out);
    show_list("allow", &config->allow, out);
    show_list("block", &config->block, out);
    (void)fputs(config->limits_count > 0 ? "limits:\n" : "limits: []\n", out);
    for (size_t i = 0; i < config->limits_count; i++) {
        const struct limit_config *limit = config->limits[i];
        show_limit(config, limit, note, out);
        sum += config_is_shared(config, limit) ? 0 : limit_bytes(limit, &quiet);
    }
    (void)fprintf(out, "# %zu limit%s%s, ", config->limits_count,
                  config->limits_count == 1 ? "" : "s", config->adhoc.off ? "" : " and adhoc");
    put_bytes(sum, out);
    (void)fputs(" in all\n", out);
}
