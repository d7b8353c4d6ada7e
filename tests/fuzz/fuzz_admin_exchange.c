/* What arrives on the operators' listener, answered: as fuzz_http_exchange.c. */
#define FUZZED_LISTENER PROTOCOL_ADMIN

#include "fuzz/fuzz_http_exchange.c"
