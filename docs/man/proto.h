/* The .proto file of weir.v1, from the rows of operations. */
#ifndef WEIR_DOCS_PROTO_H
#define WEIR_DOCS_PROTO_H

/* Returns the text, which the caller frees; NULL: out of memory. */
char *proto_text(void);

#endif
