/* A notice of the server as commands print it: what an operator must know at once. */
#ifndef WEIR_CLI_NOTICE_LINE_H
#define WEIR_CLI_NOTICE_LINE_H

#include <jansson.h>

#include "common/buffer.h"

/* Puts "Store away since 2026-11-19T20:51:22Z: login denies all", without a line end. */
void notice_line_put(struct buffer *out, const json_t *notice);

#endif
