/*
 * Opens a limiter's file, waits until another process has done so too, takes all
 * that 100 keys have left, and prints how many units that was. Programs for
 * different machines that share a file are granted exactly the quota together
 * (tests/support/scripts/share_file.sh).
 * usage: take file algorithm hash [make]        make: only make the file
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <weir.h>

#define NOW (1000 * WEIR_DAY)
#define COUNT 2000

static int open_limiter(struct weir **w, char **argv)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    struct weir_error error;
    o.memory = WEIR_FILE;
    o.path = argv[1];
    o.algorithm = weir_algorithm_by_name(argv[2]);
    o.hash = atoi(argv[3]);
    o.flags = WEIR_EXPLICIT_TIME;
    o.count = COUNT;
    o.period_ns = WEIR_HOUR;
    o.max_keys = 1000;
    int e = weir_open(w, &o, &error);
    if (e != 0) {
        (void)fprintf(stderr, "%s\n", error.text);
    }
    return e;
}

/* Each of the two takes one unit of a key of its own, and waits for the other's. 0, or
 * -1 after a minute. */
static int meet(struct weir *w)
{
    struct weir_question peek = {.key = "meet", .key_len = 4, .cost = 1, .mode = WEIR_PEEK};
    struct weir_answer a = {0};
    if (weir_check_at(w, "meet", 4, 1, NOW, &a) != 0) {
        return -1;
    }
    for (int i = 0; i < 60000; i++) {
        if (weir_ask_at(w, &peek, NOW, &a) != 0 || a.remaining <= COUNT - 2) {
            return a.remaining <= COUNT - 2 ? 0 : -1;
        }
        (void)usleep(1000);
    }
    return -1;
}

int main(int argc, char **argv)
{
    struct weir *w;
    struct weir_answer a = {0};
    unsigned long taken = 0;
    if (argc < 4 || open_limiter(&w, argv) != 0) {
        return 1;
    }
    if (argc > 4) {
        weir_close(w);
        return 0;
    }
    if (meet(w) != 0) {
        (void)fprintf(stderr, "the other process is not seen\n");
        return 1;
    }
    for (int key = 0; key < 100; key++) {
        do {
            if (weir_check_at(w, &key, sizeof key, 1, NOW, &a) != 0) {
                return 1;
            }
            taken += a.granted;
        } while (a.verdict == WEIR_ALLOW);
    }
    weir_close(w);
    return printf("%lu\n", taken) < 0;
}
