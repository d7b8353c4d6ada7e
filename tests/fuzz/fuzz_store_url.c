/*
 * URLs of stores. What is read is within its bounds, terminated, and complete; what is refused has
 * a reason, which shows nothing of an URL with an '@'. No byte beyond the input is read.
 */
#include <stdlib.h>

#include "redis/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void check(const struct store_url *url)
{
    require(url->count >= 1 && url->count <= STORE_HOSTS_MAX);
    for (size_t i = 0; i < url->count; i++) {
        const struct store_host *h = &url->hosts[i];
        size_t len = strnlen(h->host, sizeof h->host);
        require(len >= 1 && len < sizeof h->host);
        require(h->host[0] == '/' ? h->port == 0 && url->kind == STORE_ALONE
                                  : h->port >= 1 && h->port <= 65535);
    }
    size_t len = strnlen(url->master, sizeof url->master);
    require(len < sizeof url->master && (len > 0) == (url->kind == STORE_SENTINEL));
    require(url->kind == STORE_ALONE || url->db == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char secret[] = "redis://user:hunter2@";
    struct store_url url;
    struct weir_error error = {0};
    char *copy = malloc(sizeof secret + size);
    require(copy != NULL);
    if (size > 0) {
        memcpy(copy, data, size);
    }
    if (store_url_read((struct weir_text){copy, size}, &url, &error) == 0) {
        check(&url);
    } else {
        require(error.code == WEIR_EINVAL && error.text[0] != 0);
    }
    memcpy(copy, secret, sizeof secret - 1);
    if (size > 0) {
        memcpy(copy + sizeof secret - 1, data, size);
    }
    require(store_url_read((struct weir_text){copy, sizeof secret - 1 + size}, &url, &error) != 0);
    require(strstr(error.text, "hunter2") == NULL);
    free(copy);
    return 0;
}
