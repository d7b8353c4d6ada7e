/* A server refuses messages of a handshake that announce too much, in whatever pieces they come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/tls/certificates.h"
#include "tls/tls.h"
#include "tls/tls_hello.h"

#define BYTES(string) ((struct weir_text){string, sizeof(string) - 1})

#define HEAD "\x16\x03\x01\0\4"            /* of a record with four bytes */
#define LARGEST HEAD "\1\0\x40\0"          /* a hello of 16,384 bytes */
#define TOO_LARGE HEAD "\1\0\x40\1"        /* one more */
#define OTHER "\x16\x03\x01\0\5\2\0\0\1\0" /* a whole message of one byte */

/* Follows the bytes in pieces of every size; the answer must be the same. */
static bool follows(struct weir_text bytes)
{
    struct tls_hello whole = {.keyed = false};
    bool good = tls_hello_follow(&whole, bytes);
    for (size_t piece = 1; piece < bytes.len; piece++) {
        struct tls_hello h = {.keyed = false};
        bool all = true;
        for (size_t at = 0; at < bytes.len; at += piece) {
            struct weir_text part = text_after(bytes, at);
            part.len = part.len < piece ? part.len : piece;
            all = all && tls_hello_follow(&h, part);
        }
        assert_int_equal(all, good);
    }
    return good;
}

static void a_message_that_announces_too_much_is_found(void **state)
{
    assert_true(follows(BYTES(LARGEST)));
    assert_false(follows(BYTES(TOO_LARGE)));
    assert_false(follows(BYTES(HEAD "\1\xff\xff\xff")));
}

static void it_is_found_after_others_and_across_records(void **state)
{
    assert_true(follows(BYTES(OTHER OTHER)));
    assert_false(follows(BYTES(OTHER TOO_LARGE)));
    assert_false(follows(BYTES("\x16\x03\x01\0\1\1"
                               "\x16\x03\x01\0\0"
                               "\x16\x03\x01\0\3\2\0\0")));
    /* A hello that follows the server's wish to try again, with a record for old proxies before it.
     * */
    assert_false(follows(BYTES(OTHER "\x14\x03\x03\0\1\1" TOO_LARGE)));
}

static void encrypted_messages_are_not_looked_at(void **state)
{
    /* TLS 1.2: the client's key, then all is encrypted. */
    assert_true(follows(BYTES("\x16\x03\x03\0\5\x10\0\0\1\0"
                              "\x14\x03\x03\0\1\1"
                              "\x16\x03\x03\0\4\xff\xff\xff\xff")));
    /* TLS 1.3: records of another type. */
    assert_true(follows(BYTES(OTHER "\x17\x03\x03\0\4\xff\xff\xff\xff")));
}

static void a_server_ends_such_a_handshake(void **state)
{
    struct certificates files;
    struct tls_context *context;
    struct weir_error error;
    struct buffer plain;
    struct buffer out;
    struct weir_text bytes = BYTES(TOO_LARGE);
    certificates_make(&files);
    struct tls_options o = {.server = true,
                            .cert = certificates_path(&files, "server.crt"),
                            .key = certificates_path(&files, "server.key")};
    assert_int_equal(tls_context_create(&context, &o, &error), 0);
    buffer_init(&plain, 65536);
    buffer_init(&out, 65536);
    struct tls_session *s = tls_session_create(context, NULL);
    assert_int_equal(tls_receive(s, &bytes, &plain, &out, &error), TLS_FAILED);
    assert_string_equal(error.text,
                        "TLS: found a message of more than 16384 bytes in the handshake");
    tls_session_destroy(s);
    tls_context_unref(context);
    buffer_finish(&plain);
    buffer_finish(&out);
    certificates_remove(&files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_that_announces_too_much_is_found),
        cmocka_unit_test(it_is_found_after_others_and_across_records),
        cmocka_unit_test(encrypted_messages_are_not_looked_at),
        cmocka_unit_test(a_server_ends_such_a_handshake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
