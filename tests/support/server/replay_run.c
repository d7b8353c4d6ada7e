#include "support/server/replay_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/cli.h"

/* A descriptor of this process that is temporarily redirected to a file. */
struct turned {
    int fd;
    int before;
    FILE *file;
};

static struct turned turn(int fd)
{
    struct turned t = {fd, dup(fd), tmpfile()};
    assert_true(t.before >= 0 && t.file != NULL);
    return t;
}

static char *turn_back(struct turned *t, size_t *len)
{
    assert_int_equal(dup2(t->before, t->fd), t->fd);
    close(t->before);
    long size = (fseek(t->file, 0, SEEK_END), ftell(t->file));
    char *text = calloc(1, (size_t)size + 1);
    rewind(t->file);
    assert_int_equal(fread(text, 1, (size_t)size, t->file), size);
    fclose(t->file);
    *len = (size_t)size;
    return text;
}

static int run(const char *words)
{
    char copy[4096] = "replay ";
    char *argv[64];
    int argc = 0;
    strncat(copy, words, sizeof copy - strlen(copy) - 1);
    for (char *word = strtok(copy, " "); word != NULL && argc < 63; word = strtok(NULL, " ")) {
        argv[argc++] = word;
    }
    argv[argc] = NULL;
    return cli_run(&cli_replay, argc, argv);
}

struct replay_result replay_run(const char *words, const char *input, size_t input_len)
{
    struct replay_result r;
    struct turned in = turn(0);
    struct turned out = turn(1);
    struct turned err = turn(2);
    size_t ignored;
    assert_int_equal(fwrite(input, 1, input_len, in.file), input_len);
    fflush(in.file);
    rewind(in.file);
    fflush(stdout);
    dup2(fileno(in.file), 0);
    dup2(fileno(out.file), 1);
    dup2(fileno(err.file), 2);
    r.code = run(words);
    fflush(stdout);
    r.err = turn_back(&err, &r.err_len);
    r.out = turn_back(&out, &r.out_len);
    free(turn_back(&in, &ignored));
    return r;
}

void replay_result_finish(struct replay_result *r)
{
    free(r->out);
    free(r->err);
}

void replay_expect(const char *words, const char *input, int code, const char *out, const char *err)
{
    char all[4096];
    snprintf(all, sizeof all, "--quiet %s", words);
    struct replay_result r = replay_run(all, input, strlen(input));
    assert_string_equal(r.err, err);
    assert_string_equal(r.out, out);
    assert_int_equal(r.code, code);
    replay_result_finish(&r);
}
