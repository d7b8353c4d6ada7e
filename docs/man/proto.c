/*
 * proto/weir/v1/limiter.proto: a method and a request for each operation. A member has the same
 * field number in every request, its place in enum ask_member plus 1 (server/grpc/grpc_limiter.c).
 */
#include "proto.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "server/operations/operations.h"

static const char head[] =
    "// weir over gRPC. Generated from the server's own rows by `make proto`; do not edit.\n"
    "syntax = \"proto3\";\n"
    "\n"
    "package weir.v1;\n"
    "\n"
    "option go_package = \"weir/v1;weirv1\";\n"
    "option java_multiple_files = true;\n"
    "\n"
    "// A denial is an answer, not an error: calls end with the status OK, and Answer.verdict says "
    "whether\n"
    "// the request may pass. A call needs the secret of its role, if the server has secrets, in "
    "the\n"
    "// metadata: `authorization: Bearer SECRET`.\n"
    "service Limiter {\n";

static const char tail[] =
    "enum Verdict {\n"
    "  VERDICT_UNSPECIFIED = 0;\n"
    "  VERDICT_ALLOW = 1;\n"
    "  VERDICT_DENY = 2;   // not now: retry_after_ms says when\n"
    "  VERDICT_NEVER = 3;  // no retry can succeed\n"
    "}\n"
    "\n"
    "message Answer {\n"
    "  Verdict verdict = 1;\n"
    "  string limit = 2;           // the limit that decided; empty: none applied\n"
    "  uint64 quota = 3;\n"
    "  int64 remaining = 4;        // -1: no limit applied, or its quota is not known\n"
    "  int64 retry_after_ms = 5;   // of a denial at least 1; of NEVER -1\n"
    "  uint64 reset_after_ms = 6;\n"
    "  uint64 delay_ms = 7;        // wait this long before going on\n"
    "  bool degraded = 8;          // decided without the store\n"
    "  bool shadow = 9;            // a limit in shadow mode would have denied\n"
    "  bool full = 10;             // the table of the limit is full\n"
    "  Reason reason = 11;\n"
    "  string reservation = 12;    // of Reserve: its id\n"
    "  int64 blocked_ms = 13;      // of operations on one key: how long it is blocked; -1: "
    "without end\n"
    "  bool missing = 14;          // a limit was skipped for want of a key, and nothing took its "
    "place\n"
    "}\n"
    "\n"
    "// Up to 1000 checks, each decided by itself.\n"
    "message BatchRequest {\n"
    "  repeated CheckRequest requests = 1;\n"
    "}\n"
    "\n"
    "message BatchAnswer {\n"
    "  message Result {\n"
    "    oneof result {\n"
    "      Answer answer = 1;\n"
    "      string error = 2;\n"
    "    }\n"
    "  }\n"
    "  repeated Result results = 1;  // in the order of the requests\n"
    "}\n";

static const char *type_of(const struct ask_member_row *row)
{
    return row->kind == ASK_NUMBER  ? "uint64"
           : row->kind == ASK_PARTS ? "repeated string"
           : row->kind == ASK_PAIRS ? "map<string, string>"
                                    : "string";
}

static void put_methods(FILE *f)
{
    for (unsigned i = 0; i < OPERATIONS; i++) {
        const struct operation_row *row = &operation_rows[i];
        if (row->reach != 0) {
            int first = toupper((unsigned char)row->name[0]);
            (void)fprintf(f, "  // Role %s: %s.\n  rpc %c%s(%c%sRequest) returns (Answer);\n",
                          role_names[row->role], row->summary, first, row->name + 1, first,
                          row->name + 1);
        }
    }
    (void)fputs("  rpc Batch(BatchRequest) returns (BatchAnswer);\n}\n\n", f);
}

static void put_requests(FILE *f)
{
    for (unsigned i = 0; i < OPERATIONS; i++) {
        const struct operation_row *row = &operation_rows[i];
        if (row->reach == 0) {
            continue;
        }
        (void)fprintf(f, "message %c%sRequest {\n", toupper((unsigned char)row->name[0]),
                      row->name + 1);
        for (unsigned m = 0; m < ASK_MEMBERS; m++) {
            if ((row->members & ASK_BIT(m)) != 0) {
                const struct ask_member_row *member = &ask_members[m];
                size_t about = strcspn(member->about, ";"); /* the rest is about JSON, or long */
                (void)fprintf(f, "  %s %s = %u;  // %.*s\n", type_of(member), member->name, m + 1,
                              (int)about, member->about);
            }
        }
        (void)fputs("}\n\n", f);
    }
}

/* The reasons are numbered as in weir_rules.h, plus 1. */
static void put_reasons(FILE *f)
{
    (void)fputs("enum Reason {\n  REASON_UNSPECIFIED = 0;\n", f);
    for (int i = 0; i <= WEIR_REASON_DEGRADED; i++) {
        (void)fputs("  REASON_", f);
        for (const char *c = weir_rules_reason_name(i); *c != 0; c++) {
            (void)fputc(toupper((unsigned char)*c), f);
        }
        (void)fprintf(f, " = %d;\n", i + 1);
    }
    (void)fputs("}\n\n", f);
}

char *proto_text(void)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    if (f == NULL) {
        return NULL;
    }
    (void)fputs(head, f);
    put_methods(f);
    put_requests(f);
    put_reasons(f);
    (void)fputs(tail, f);
    return fclose(f) == 0 ? text : NULL;
}
