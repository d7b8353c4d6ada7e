/* docs/openapi.json, put into the program by the build. */
#ifndef WEIR_SERVER_HTTP_OPENAPI_H
#define WEIR_SERVER_HTTP_OPENAPI_H

#include <stddef.h>

extern const char openapi_json[]; /* terminated behind its size */
extern const size_t openapi_json_size;

#endif
