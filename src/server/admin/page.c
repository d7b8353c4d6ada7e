#include "server/admin/page.h"

#include <stdio.h>

#include "server/admin/admin.h"

/*
 * The page loads nothing from other hosts, runs no script that is not a file of its own, and cannot
 * be shown inside another page. It does not tell other hosts its address, which may hold a secret
 * until its script has read it.
 */
#define PROTECTION                                                                                 \
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "           \
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "                    \
    "frame-ancestors 'none'\r\nReferrer-Policy: no-referrer\r\n"

/* ---- header fields of the request ---- */

/* Returns whether the parameters of a coding, "q=0.5", refuse it: q=0, q=0.0, ... */
static bool is_refused(struct weir_text parameters)
{
    struct weir_text q = text_trim(parameters);
    if (q.len < 3 || (q.at[0] | 0x20) != 'q' || q.at[1] != '=') {
        return false;
    }
    for (size_t i = 2; i < q.len; i++) {
        if (q.at[i] != '0' && q.at[i] != '.') {
            return false;
        }
    }
    return true;
}

/* Returns whether the client takes gzip. "*" stands for codings that are not named. */
static bool takes_gzip(const struct http_request *r)
{
    struct weir_text rest = http_value(r, "accept-encoding");
    bool any = false;
    while (rest.len > 0) {
        struct weir_text parameters = text_cut(&rest, ',');
        struct weir_text coding = text_trim(text_cut(&parameters, ';'));
        if (text_is_word(coding, "GZIP") || text_is_word(coding, "X-GZIP")) {
            return !is_refused(parameters);
        }
        any = any || (text_is(coding, "*") && !is_refused(parameters));
    }
    return any;
}

/* Returns whether If-None-Match names this tag, weak or strong, or any. */
static bool has_tag(const struct http_request *r, struct weir_text tag)
{
    struct weir_text rest = http_value(r, "if-none-match");
    while (rest.len > 0) {
        struct weir_text one = text_trim(text_cut(&rest, ','));
        one = text_starts(one, "W/") ? text_after(one, 2) : one;
        if (text_is(one, "*") || text_equal(one, tag)) {
            return true;
        }
    }
    return false;
}

/* ---- replies ---- */

static void reply_file(struct exchange *x, const struct page_file *file)
{
    char tag[64];
    char fields[640];
    bool zip = takes_gzip(x->request);
    (void)snprintf(tag, sizeof tag, "\"%s%s\"", file->hash, zip ? "-gzip" : "");
    bool same = has_tag(x->request, text_of(tag));
    (void)snprintf(fields, sizeof fields,
                   "ETag: %s\r\nCache-Control: no-cache\r\nVary: Accept-Encoding\r\n%s" PROTECTION,
                   tag, zip && !same ? "Content-Encoding: gzip\r\n" : "");
    x->fields = fields;
    if (same) {
        http_reply(x, 304, NULL, NULL);
    } else {
        buffer_put(&x->body, zip ? file->zipped : file->plain);
        http_reply(x, 200, file->type, NULL);
    }
    x->fields = NULL;
}

static void reply_named(struct exchange *x, struct weir_text name)
{
    const struct page_file *file = page_files;
    if (file->name == NULL) {
        http_reply_problem(x, 404, "the page is not part of this program: it was built without it");
        return;
    }
    if (x->server->options.no_page) {
        http_reply_problem(x, 404, "the page is off: --page or server.page says so");
        return;
    }
    while (file->name != NULL && !text_is(name, file->name)) {
        file++;
    }
    if (file->name != NULL) {
        reply_file(x, file);
    } else {
        http_reply_problem(x, 404, "the page has no file of this name");
    }
}

static void run_page(struct exchange *x)
{
    reply_named(x, TEXT("index.html"));
}

static void run_file(struct exchange *x)
{
    reply_named(x, text_after(x->request->path, strlen("/page/")));
}

const struct http_route admin_page_routes[] = {
    {"GET", "/", HTTP_AT, ROLE_NONE, run_page, .summary = "a page for browsers"},
    {"GET", "/page", HTTP_BELOW, ROLE_NONE, run_file, .summary = "a file of the page"},
    {.path = NULL},
};
