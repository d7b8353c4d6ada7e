/* Connections without calls: PINGs keep one open, and one that is silent for too long is
 * told that it ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/server/server_client.h"

#define IDLE_MS 2000

static struct server_world world;
static struct server_client client;

static int open_connection(void **state)
{
    static const char hello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0"; /* SETTINGS */
    struct server_options o = server_world_options();
    char address[SERVER_ADDRESS_MAX];
    o.idle_ms = IDLE_MS;
    o.listen[PROTOCOL_RESP] = "off";
    o.listen[PROTOCOL_GRPC] = "127.0.0.1:0";
    server_world_start(&world, "limits: [{name: a, key: [user], rate: 1/s}]", &o);
    (void)server_address(&world.server, PROTOCOL_GRPC, address, sizeof address);
    server_connect(&client, address);
    return server_send(&client, hello, sizeof hello) ? 0 : -1;
}

static int close_connection(void **state)
{
    server_disconnect(&client);
    server_world_stop(&world);
    return 0;
}

/* Receives frames up to one of this type, whose payload it returns, or to the end: NULL. */
static const unsigned char *receive(unsigned type)
{
    static unsigned char payload[16384];
    unsigned char head[9];
    while (recv(client.fd, head, sizeof head, MSG_WAITALL) == sizeof head) {
        size_t len = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
        assert_true(len <= sizeof payload);
        assert_int_equal(len == 0 ? 0 : recv(client.fd, payload, len, MSG_WAITALL), len);
        if (head[3] == type) {
            return payload;
        }
    }
    return NULL;
}

static void pings_keep_a_connection_open(void **state)
{
    static const char ping[] = "\0\0\10\6\0\0\0\0\0weir-it";
    for (int i = 0; i < 9; i++) {
        (void)usleep(IDLE_MS * 1000 / 7);
        assert_true(server_send(&client, ping, sizeof ping));
        const unsigned char *echo = receive(6);
        assert_non_null(echo);
        assert_memory_equal(echo, "weir-it", 8);
    }
}

static void a_silent_connection_is_told_that_it_ends(void **state)
{
    const unsigned char *goaway = receive(7);
    assert_non_null(goaway);
    assert_memory_equal(goaway, "\0\0\0\0\0\0\0\0", 8); /* no call was taken, and no error */
    assert_null(receive(7));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pings_keep_a_connection_open, open_connection,
                                        close_connection),
        cmocka_unit_test_setup_teardown(a_silent_connection_is_told_that_it_ends, open_connection,
                                        close_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
