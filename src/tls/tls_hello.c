#include "tls/tls_hello.h"

/* Types of records and messages (RFC 8446, 5.1 and B.3; RFC 5246, 7.4). */
#define RECORD_CHANGE_CIPHER 20
#define RECORD_HANDSHAKE 22
#define MESSAGE_CLIENT_KEY 16

/* Moves bytes from *from into a head of `size` bytes. Returns whether it is complete. */
static bool fill(unsigned char *head, unsigned size, unsigned *have, struct weir_text *from)
{
    while (*have < size && from->len > 0) {
        head[(*have)++] = (unsigned char)from->at[0];
        *from = text_after(*from, 1);
    }
    return *have == size;
}

/* Takes as many bytes of a body as there are. Returns them. */
static struct weir_text take(size_t *left, struct weir_text *from)
{
    struct weir_text body = {from->at, from->len < *left ? from->len : *left};
    *left -= body.len;
    *from = text_after(*from, body.len);
    return body;
}

static bool follow_messages(struct tls_hello *h, struct weir_text bytes)
{
    while (bytes.len > 0) {
        if (h->message_left > 0) {
            (void)take(&h->message_left, &bytes);
        } else if (fill(h->message, sizeof h->message, &h->message_have, &bytes)) {
            h->message_have = 0;
            h->message_left =
                (size_t)h->message[1] << 16 | (size_t)h->message[2] << 8 | h->message[3];
            h->keyed = h->keyed || h->message[0] == MESSAGE_CLIENT_KEY;
            if (h->message_left > TLS_HELLO_BYTES) {
                return false;
            }
        }
    }
    return true;
}

bool tls_hello_follow(struct tls_hello *h, struct weir_text bytes)
{
    while (bytes.len > 0) {
        if (h->record_left > 0) {
            struct weir_text body = take(&h->record_left, &bytes);
            bool plain = h->record[0] == RECORD_HANDSHAKE && !h->sealed;
            if (plain && !follow_messages(h, body)) {
                return false;
            }
        } else if (fill(h->record, sizeof h->record, &h->record_have, &bytes)) {
            h->record_have = 0;
            h->record_left = (size_t)h->record[3] << 8 | h->record[4];
            h->sealed = h->sealed || (h->keyed && h->record[0] == RECORD_CHANGE_CIPHER);
        }
    }
    return true;
}
