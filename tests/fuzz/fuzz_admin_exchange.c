/* What arrives on the operators' listener, answered: as fuzz_http_exchange.c. */
#define FUZZED_PROTOCOL protocol_admin

#include "fuzz/fuzz_http_exchange.c"
