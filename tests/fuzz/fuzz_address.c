/*
 * A text is an address for us exactly if it is one for inet_pton(), once brackets, port
 * and zone are off, with the same bits; what is printed reads back.
 */
#include <stdlib.h>

#include "support/oracle/policy_slow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

/* Ends the string at the first of the bytes. */
static void end_at(char *string, const char *bytes)
{
    string[strcspn(string, bytes)] = '\0';
}

/* What of an accepted text is the address. */
static const char *bare(char *string)
{
    if (string[0] == '[') {
        string++;
        end_at(string, "]%");
    } else if (strcspn(string, ".") < strcspn(string, ":")) {
        end_at(string, ":");
    } else {
        end_at(string, "%");
    }
    return string;
}

static void require_read_back(const struct address *a)
{
    char text[ADDRESS_MAX];
    struct address again;
    require(address_parse(text_of(address_print(a, text)), &again, NULL) == 0);
    require(slow_same(a, &again));
}

static void require_network(struct weir_text text)
{
    struct weir_error error = {0};
    char printed[CIDR_MAX];
    struct cidr c;
    struct cidr again;
    if (cidr_parse(text, &c, &error) != 0) {
        require(error.code == WEIR_EINVAL && error.text[0] != '\0');
        return;
    }
    require(c.prefix <= (c.network.family == 4 ? 32 : 128));
    for (unsigned i = c.prefix; i < 128; i++) {
        require(!slow_bit(&c.network, i));
    }
    require(cidr_parse(text_of(cidr_print(&c, printed)), &again, NULL) == 0);
    require(slow_same(&c.network, &again.network) && c.prefix == again.prefix);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_error error = {0};
    struct address a;
    struct address reference;
    struct weir_text text = {(const char *)data, size};
    char *string = calloc(1, size + 1);
    require(string != NULL);
    memcpy(string, data, size);
    bool terminated = memchr(data, 0, size) == NULL;
    int e = address_parse(text, &a, &error);
    require(e == 0 || (e == WEIR_EINVAL && error.code == e && error.text[0] != '\0'));
    require(e == 0 || !terminated || !slow_address(string, &reference));
    if (e == 0) {
        require(terminated && slow_address(bare(string), &reference));
        require(slow_same(&a, &reference));
        require_read_back(&a);
    }
    require_network(text);
    free(string);
    return 0;
}
