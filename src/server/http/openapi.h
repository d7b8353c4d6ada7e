/* The text of openapi_base.json, which the build puts into the program. */
#ifndef WEIR_SERVER_HTTP_OPENAPI_H
#define WEIR_SERVER_HTTP_OPENAPI_H

#include <stddef.h>

extern const char openapi_json[]; /* followed by a NUL, which the size does not count */
extern const size_t openapi_json_size;

#endif
