#include "support/tls/tls_pair.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define MOST ((size_t)1 << 20)

void tls_pair_open(struct tls_pair *p, struct tls_context *client, struct tls_context *server,
                   const char *name)
{
    *p = (struct tls_pair){.piece = MOST};
    p->end[PAIR_CLIENT].session = tls_session_create(client, name);
    p->end[PAIR_SERVER].session = tls_session_create(server, NULL);
    for (int i = 0; i < PAIR_ENDS; i++) {
        assert_non_null(p->end[i].session);
        buffer_init(&p->end[i].plain, MOST);
        buffer_init(&p->end[i].out, MOST);
    }
}

void tls_pair_close(struct tls_pair *p)
{
    for (int i = 0; i < PAIR_ENDS; i++) {
        tls_session_destroy(p->end[i].session);
        buffer_finish(&p->end[i].plain);
        buffer_finish(&p->end[i].out);
    }
}

static void receive(struct tls_pair_end *e, struct weir_text *cipher)
{
    e->result = tls_receive(e->session, cipher, &e->plain, &e->out, &e->error);
}

/* Moves one piece; false if there was none, or if the end does not listen any more. */
static bool carry(struct tls_pair *p, int to)
{
    struct tls_pair_end *e = &p->end[to];
    struct buffer *from = &p->end[1 - to].out;
    struct weir_text cipher = buffer_text(from);
    cipher.len = cipher.len < p->piece ? cipher.len : p->piece;
    if (cipher.len == 0 || e->result != TLS_OK) {
        return false;
    }
    size_t len = cipher.len;
    receive(e, &cipher);
    buffer_take(from, len - cipher.len);
    return len > cipher.len;
}

void tls_pair_run(struct tls_pair *p)
{
    struct weir_text none = TEXT("");
    if (!tls_is_up(p->end[PAIR_CLIENT].session) && p->end[PAIR_CLIENT].result == TLS_OK) {
        receive(&p->end[PAIR_CLIENT], &none);
    }
    for (bool moved = true; moved;) {
        moved = carry(p, PAIR_SERVER);
        moved = carry(p, PAIR_CLIENT) || moved;
    }
}

void tls_pair_say(struct tls_pair *p, int from, const char *text)
{
    struct tls_pair_end *e = &p->end[from];
    struct weir_text plain = text_of(text);
    assert_int_equal(tls_send(e->session, &plain, &e->out, &e->error), TLS_OK);
    assert_int_equal(plain.len, 0);
}

struct weir_text tls_pair_heard(struct tls_pair *p, int at)
{
    struct buffer *b = &p->end[at].plain;
    struct weir_text heard = buffer_text(b);
    buffer_take(b, heard.len);
    return heard;
}
