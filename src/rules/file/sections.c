#include "rules/file/sections.h"

#include "rules/file/tiers.h"
#include "rules/file/yaml_write.h"
#include "rules/value/normalize.h"

/* ---- server ---- */

#define ADDRESS_EXPECTED "ADDRESS:PORT, PORT for 127.0.0.1, unix:PATH or off"

static bool listener_is_good(struct weir_text text)
{
    char whole[PORT_ADDRESS_MAX];
    const char *colon = memrchr(text.at, ':', text.len);
    return text_is(text, "off") || (text_starts(text, "unix:") && text.len > 5) ||
           port_complete(text, whole) ||
           (colon != NULL && port_is_good(text_after(text, (size_t)(colon + 1 - text.at))));
}

/* Reads the address. A port alone is kept with its address, so that a reload compares the same. */
static void read_listener(struct reader *r, const struct field *f, const struct node *node,
                          void *value)
{
    struct weir_text *address = value;
    char whole[PORT_ADDRESS_MAX];
    field_read_text(r, f, node, value);
    if (port_complete(*address, whole)) {
        *address = arena_text(&r->source->arena, text_of(whole));
    }
}

bool mode_parse(struct weir_text text, unsigned *mode)
{
    unsigned number = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '7' || number > 0777) {
            return false;
        }
        number = number * 8 + (unsigned)(text.at[i] - '0');
    }
    *mode = number;
    return number > 0 && number <= 0777;
}

static void read_mode(struct reader *r, const struct field *f, const struct node *node, void *value)
{
    unsigned mode;
    if (node->kind != NODE_SCALAR || !mode_parse(node->scalar, &mode)) {
        unexpected(r, node, f->expects);
        return;
    }
    *(unsigned *)value = mode;
}

static void show_mode(const struct show *s, const void *value)
{
    (void)fprintf(s->out, " %04o", *(const unsigned *)value);
}

static void read_networks(struct reader *r, const struct field *f, const struct node *node,
                          void *value)
{
    struct networks *networks = value;
    const struct node *const *items;
    struct weir_error error;
    size_t n =
        node->kind == NODE_LIST && node->count == 0 ? 0 : scalars_of(r, node, f->expects, &items);
    networks->given = true;
    networks->at = arena_array(&r->source->arena, n, sizeof *networks->at);
    networks->count = 0;
    for (size_t i = 0; i < n && networks->at != NULL; i++) {
        if (cidr_parse(items[i]->scalar, &networks->at[networks->count], &error) != 0) {
            problem(r->problems, items[i]->place, "%s", error.text);
        } else {
            networks->count++;
        }
    }
}

static void show_networks(const struct show *s, const void *value)
{
    const struct networks *networks = value;
    char text[CIDR_MAX];
    if (!networks->given) {
        (void)fprintf(s->out, " %s", s->field->unset);
        return;
    }
    (void)fputs(" [", s->out);
    for (size_t i = 0; i < networks->count; i++) {
        (void)fputs(i > 0 ? ", " : "", s->out);
        yaml_put(s->out, text_of(cidr_print(&networks->at[i], text)));
    }
    (void)fputc(']', s->out);
}

static bool same_networks(const void *left, const void *right)
{
    const struct networks *a = left;
    const struct networks *b = right;
    size_t i = 0;
    while (i < a->count && i < b->count && memcmp(&a->at[i], &b->at[i], sizeof a->at[i]) == 0) {
        i++;
    }
    return a->given == b->given && i == a->count && i == b->count;
}

static const struct field_type type_listener = {.size = sizeof(struct weir_text),
                                                .read = read_listener,
                                                .show = field_show_text,
                                                .same = field_same_text,
                                                .good = listener_is_good};
static const struct field_type type_mode = {
    .size = sizeof(unsigned), .read = read_mode, .show = show_mode};
/* Shown only if it is given; and one that is always shown, as its `unset` if it is not given. */
const struct field_type type_networks = {.size = sizeof(struct networks),
                                         .read = read_networks,
                                         .show = show_networks,
                                         .same = same_networks,
                                         .shape = SHAPE_SCALARS};
static const struct field_type type_trusted = {
    .read = read_networks, .show = show_networks, .same = same_networks, .shape = SHAPE_SCALARS};

const char *const client_field_names[CLIENT_FIELDS + 1] = {
    [CLIENT_FIELD_ANY] = "any",
    [CLIENT_FIELD_X_FORWARDED_FOR] = "x-forwarded-for",
    [CLIENT_FIELD_FORWARDED] = "forwarded",
    [CLIENT_FIELD_X_REAL_IP] = "x-real-ip",
};

const char *const page_names[PAGE_CHOICES + 1] = {[PAGE_ON] = "on", [PAGE_OFF] = "off"};

static const char *const headers_names[] = {"ietf", "x-epoch", "x-delta", "off", NULL};

/* ---- TLS on listeners ---- */

static bool is_choice(const char *const *choices, struct weir_text name)
{
    size_t i = 0;
    while (choices[i] != NULL && !text_is(name, choices[i])) {
        i++;
    }
    return choices[i] != NULL;
}

/* Reads names; those of a row with choices must be among them. */
static void read_names(struct reader *r, const struct field *f, const struct node *node,
                       void *value)
{
    const struct node *const *items;
    size_t n = scalars_of(r, node, f->expects, &items);
    for (size_t i = 0; i < n; i++) {
        struct weir_text name = items[i]->scalar;
        if ((f->choices != NULL && !is_choice(f->choices, name)) ||
            (f->type->good != NULL && !f->type->good(name))) {
            unexpected(r, items[i], f->expects);
        }
    }
    *(struct texts *)value = texts_of(r, items, n);
}

static bool host_is_good(struct weir_text text)
{
    return text.len <= 255 && text_is_made_of(text, "-._");
}

#define TYPE_NAMES(is_good)                                                                        \
    {                                                                                              \
        .size = sizeof(struct texts), .read = read_names, .show = field_show_texts,                \
        .same = field_same_texts, .good = is_good, .shape = SHAPE_SCALARS                          \
    }

static const struct field_type type_names = TYPE_NAMES(NULL);
static const struct field_type type_hosts = TYPE_NAMES(host_is_good);

const char *const client_cert_names[CLIENT_CERTS + 1] = {[CLIENT_CERT_NONE] = "none",
                                                         [CLIENT_CERT_OPTIONAL] = "optional",
                                                         [CLIENT_CERT_REQUIRED] = "required"};

const char *const listener_names[] = {"http", "resp", "grpc", "admin", "metrics", NULL};

#define SERVER_TLS(member) offsetof(struct server_tls_config, member)

static const struct field server_tls_fields[] = {
    {"cert", "a file", "a file in PEM with the certificate and those between it and its CA",
     &type_text, SERVER_TLS(cert), .required = true},
    {"key", "a file", "a file in PEM with the key of the certificate", &type_text, SERVER_TLS(key),
     .unset = "the file of `cert` has the key too"},
    {"client_ca", "a file", "a file in PEM with the CAs of clients' certificates", &type_text,
     SERVER_TLS(client_ca), .unset = "none"},
    {"client_cert", "none, optional or required",
     "whether clients must show a certificate of `client_ca`; optional: a client may show none",
     &type_choice, SERVER_TLS(client_cert), .unset = "none", .choices = client_cert_names},
    {"listeners", "listeners: http, resp, grpc, admin or metrics",
     "the listeners that speak TLS; unix sockets never do", &type_names, SERVER_TLS(listeners),
     .unset = "all", .choices = listener_names},
};

const struct section section_server_tls = SECTION("server.tls", "TLS", server_tls_fields);

static void read_server_tls(struct reader *r, const struct field *f, const struct node *node,
                            void *value)
{
    const struct server_tls_config *tls = value;
    field_read_inline(r, f, node, value);
    if ((tls->client_ca.len > 0) != (tls->client_cert != CLIENT_CERT_NONE)) {
        problem(r->problems, node->place, "found %s, expected %s",
                tls->client_ca.len > 0 ? "client_ca without client_cert"
                                       : "client_cert without client_ca",
                tls->client_ca.len > 0 ? "client_cert: optional or required"
                                       : "client_ca, a file with the CAs of clients");
    }
}

static bool same_server_tls(const void *a, const void *b)
{
    return fields_same(&section_server_tls, CHANGE_BY_SECTION, a, b);
}

/* The size is that of `cert`, the first member: without it there is no TLS. */
static const struct field_type type_server_tls = {.size = sizeof(struct weir_text),
                                                  .read = read_server_tls,
                                                  .show = field_show_inline,
                                                  .same = same_server_tls};

/* ---- the section ---- */

#define SERVER(member) offsetof(struct server_config, member)

static const struct field server_fields[] = {
    {"http", ADDRESS_EXPECTED, "the HTTP listener", &type_listener, SERVER(http),
     .initial = "127.0.0.1:8080"},
    {"resp", ADDRESS_EXPECTED, "the RESP listener", &type_listener, SERVER(resp),
     .initial = "127.0.0.1:6380"},
    {"admin", ADDRESS_EXPECTED, "the listener for operators", &type_listener, SERVER(admin),
     .initial = "127.0.0.1:8082"},
    {"grpc", ADDRESS_EXPECTED, "where to listen for gRPC, by convention on port 8081",
     &type_listener, SERVER(grpc), .initial = "off"},
    {"metrics", ADDRESS_EXPECTED,
     "a listener for metrics and health checks alone, which needs no secret", &type_listener,
     SERVER(metrics), .initial = "off"},
    {"page", "on or off", "the page for browsers on the listener for operators", &type_choice,
     SERVER(page), .initial = "on", .choices = page_names},
    {"state", "a folder", "the folder that keeps the state over restarts", &type_text,
     SERVER(state), .unset = "none: the state is in memory only"},
    {"check_secrets", "a file",
     "a file with the secrets of clients, one on each line; a relative path begins at the rule "
     "file",
     &type_text, SERVER(check_secrets), .unset = "none: clients need no secret"},
    {"admin_secrets", "a file", "a file with the secrets of operators, in the same form",
     &type_text, SERVER(admin_secrets), .unset = "none: the server makes one at the start"},
    {"tls", "a map such as {cert: weir.crt, key: weir.key}",
     "TLS on the listeners; files are read again when they change, and relative paths begin at the "
     "rule file",
     &type_server_tls, SERVER(tls), .unset = "none: the listeners speak plain text",
     .section = &section_server_tls},
    {"check_names", "names such as web.example",
     "names in the certificates of clients: one that matches gives the role check, as a secret of "
     "`check_secrets` does",
     &type_names, SERVER(check_names), .unset = "none"},
    {"admin_names", "names such as ops.example", "the same for the role admin", &type_names,
     SERVER(admin_names), .unset = "none"},
    {"socket_mode", MODE_EXPECTED, "the mode of unix sockets, in octal", &type_mode,
     SERVER(socket_mode), .initial = "0660"},
    {"socket_group", "the name or number of a group", "the group of unix sockets", &type_text,
     SERVER(socket_group), .unset = "that of the process"},
    {"memory", "a size such as 1GB",
     "the most memory that all limits together may take, with the files that the rules name and "
     "8MB "
     "for the keys that are denied most",
     &type_size, SERVER(memory), .initial = "1GB", .change = CHANGE_APPLIED},
    {"trusted_proxies", "networks such as 10.0.0.0/8",
     "the proxies whose forwarding headers are believed", &type_trusted, SERVER(trusted),
     .unset = "[127.0.0.0/8, '::1/128']"},
    {"client_field", "x-forwarded-for, forwarded, x-real-ip or any",
     "the only header field in which proxies name the client; any: all three, and a request in "
     "which they name different clients is refused",
     &type_choice, SERVER(client_field), .initial = "any", .choices = client_field_names},
    {"hosts", "host names such as weir.example, without a port",
     "further names of this server, which requests on loopback may have as Host", &type_hosts,
     SERVER(hosts), .unset = "IP addresses and localhost only"},
    {"headers", "ietf, x-epoch, x-delta or off", "the rate-limit headers of HTTP answers",
     &type_choice, SERVER(headers), .initial = "ietf", .choices = headers_names},
    {"reservation_ttl", "a duration from 1ms to 1d, such as 10m",
     "the longest time to live that a client can give a reservation", &type_duration,
     SERVER(reservation_ttl_ns), .initial = "10m", .least = WEIR_MILLISECOND, .most = WEIR_DAY},
    {"hold_max", "a duration up to 1min, such as 200ms, or off",
     "the longest time for which /v1/auth holds its reply, so that a leaky_bucket paces requests; "
     "one that would wait for longer is denied",
     &type_duration, SERVER(hold_max_ns), .initial = "200ms", .zero = "off",
     .least = WEIR_MILLISECOND, .most = WEIR_MINUTE, .change = CHANGE_APPLIED},
};

const struct section section_server = SECTION("server", NULL, server_fields);

static void read_server(struct reader *r, const struct field *f, const struct node *node,
                        void *value)
{
    r->config->server_place = node->place;
    field_read_map(r, f, node, value);
}

const struct field_type type_server = {.read = read_server, .show = field_show_map};

/* ---- Envoy's rate limit service ---- */

static const char *const charge_names[CHARGES + 1] = {"together", "each", NULL};

static const char *const bad_call_names[BAD_CALLS + 1] = {"error", "deny", NULL};

static const struct field envoy_fields[] = {
    {"charge", "together or each",
     "what a call takes if a descriptor is denied: together takes nothing; each takes from the "
     "other "
     "descriptors, and uses up what is left of those that are denied",
     &type_choice, offsetof(struct envoy_config, charge), .initial = "together",
     .choices = charge_names, .change = CHANGE_APPLIED},
    {"on_bad_call", "error or deny",
     "what a call gets that cannot be decided because of what is in it, such as a message of more "
     "than 272 KB: error, so that Envoy lets the request pass unless failure_mode_deny is true; "
     "deny: OVER_LIMIT",
     &type_choice, offsetof(struct envoy_config, on_bad_call), .initial = "error",
     .choices = bad_call_names, .change = CHANGE_APPLIED},
    {"negative_hits", "true or false",
     "whether is_negative_hits of a descriptor gives units back, if the caller has not shown an "
     "admin secret: true for limits of files in the format of envoyproxy/ratelimit, never for "
     "others; false: nothing is given back, and the call is answered all the same",
     &type_bool, offsetof(struct envoy_config, negative_hits), .initial = "false",
     .change = CHANGE_APPLIED},
};

const struct section section_envoy = SECTION("envoy", NULL, envoy_fields);
