/*
 * Draws the pictures of docs/ALGORITHMS.md: one traffic, five algorithms, times
 * given by hand, so that the same sources always draw the same bytes.
 *
 *     make && cc -Iinclude docs/images/draw.c build/libweir.a -pthread -o build/draw
 *     build/draw docs/images
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir.h>

/* The limit: 10 per second, for one key. */
#define COUNT 10
#define TICK_MS 50
#define TICKS 80
#define END_MS (TICK_MS * TICKS)
#define UNITS_MAX 512

/* The picture, in pixels. */
#define LEFT 48
#define PIXELS_PER_100MS 16
#define WIDTH (LEFT + END_MS / 100 * PIXELS_PER_100MS + 24)
#define BARS_BOTTOM 104
#define BAR 14 /* one unit */
#define CURVE_BOTTOM 250
#define CURVE 5 /* one unit */
#define HEIGHT 284

/* Silence, a flood of half a second across the edge at 1 s, silence, half again the limit. */
static int offered(int tick)
{
    int ms = tick * TICK_MS;
    if (ms >= 750 && ms < 1250) {
        return 4;
    }
    return ms >= 2000 && tick % 4 != 3 ? 1 : 0;
}

struct run {
    int admitted[TICKS];      /* of what was offered in each tick */
    uint64_t acts[UNITS_MAX]; /* when each admitted unit acts, in ms: at once, or after its delay */
    int count;
};

static void replay(struct weir *w, struct run *run)
{
    for (int tick = 0; tick < TICKS; tick++) {
        uint64_t now = (uint64_t)tick * TICK_MS * WEIR_MILLISECOND;
        for (int i = 0; i < offered(tick); i++) {
            struct weir_answer a;
            if (weir_check_at(w, "key", 3, 1, now, &a) != 0) {
                exit(1);
            }
            if (a.verdict == WEIR_ALLOW && run->count < UNITS_MAX) {
                run->admitted[tick]++;
                run->acts[run->count++] = (now + a.delay_ns) / WEIR_MILLISECOND;
            }
        }
    }
}

/* Units that acted in the second that ends at `ms`, that moment included. */
static int in_last_second(const struct run *run, uint64_t ms)
{
    int n = 0;
    for (int i = 0; i < run->count; i++) {
        n += run->acts[i] <= ms && run->acts[i] + 1000 > ms;
    }
    return n;
}

static int x_of(int ms)
{
    return LEFT + ms * PIXELS_PER_100MS / 100;
}

static void text(FILE *f, int x, int y, const char *colour, const char *anchor, const char *s)
{
    fprintf(f, "<text x=\"%d\" y=\"%d\" fill=\"%s\" text-anchor=\"%s\">%s</text>\n", x, y, colour,
            anchor, s);
}

static void rectangle(FILE *f, int x, int y, int width, int height, const char *colour)
{
    fprintf(f, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\"/>\n", x, y, width,
            height, colour);
}

static void line(FILE *f, int x1, int y1, int x2, int y2, const char *style)
{
    fprintf(f, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" %s/>\n", x1, y1, x2, y2, style);
}

static void draw_frame(FILE *f, const char *name)
{
    char label[8];
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    rectangle(f, 0, 0, WIDTH, HEIGHT, "#ffffff");
    text(f, LEFT, 20, "#1f2328", "start", name);
    for (int ms = 0; ms <= END_MS; ms += 1000) {
        line(f, x_of(ms), 32, x_of(ms), CURVE_BOTTOM,
             "stroke=\"#d0d7de\" stroke-dasharray=\"2 3\"");
        snprintf(label, sizeof label, "%d s", ms / 1000);
        text(f, x_of(ms), CURVE_BOTTOM + 18, "#59636e", "middle", label);
    }
    rectangle(f, 236, 10, 12, 12, "#d0d7de");
    text(f, 253, 20, "#59636e", "start", "denied");
    rectangle(f, 316, 10, 12, 12, "#0969da");
    text(f, 333, 20, "#59636e", "start", "admitted");
}

static void draw_bars(FILE *f, const struct run *run)
{
    int width = x_of(TICK_MS) - x_of(0) - 1;
    for (int tick = 0; tick < TICKS; tick++) {
        int x = x_of(tick * TICK_MS);
        int all = offered(tick) * BAR;
        int in = run->admitted[tick] * BAR;
        if (all != 0) {
            rectangle(f, x, BARS_BOTTOM - all, width, all - in, "#d0d7de");
            rectangle(f, x, BARS_BOTTOM - in, width, in, "#0969da");
        }
    }
    line(f, LEFT, BARS_BOTTOM, x_of(END_MS), BARS_BOTTOM, "stroke=\"#59636e\"");
}

static void draw_curve(FILE *f, const struct run *run, const char *what)
{
    char label[64];
    int peak = 0;
    int limit = CURVE_BOTTOM - COUNT * CURVE;
    line(f, LEFT, limit, x_of(END_MS), limit, "stroke=\"#cf222e\" stroke-dasharray=\"6 4\"");
    text(f, LEFT - 6, limit + 4, "#cf222e", "end", "10");
    fprintf(f, "<polyline fill=\"none\" stroke=\"#0969da\" stroke-width=\"2\" points=\"");
    for (int ms = 0, last = -1; ms < END_MS; ms += 10) {
        int n = in_last_second(run, (uint64_t)ms);
        peak = n > peak ? n : peak;
        if (n != last || ms == END_MS - 10) {
            int before = last < 0 ? n : last;
            fprintf(f, "%d,%d %d,%d ", x_of(ms), CURVE_BOTTOM - before * CURVE, x_of(ms),
                    CURVE_BOTTOM - n * CURVE);
            last = n;
        }
    }
    fprintf(f, "\"/>\n");
    line(f, LEFT, CURVE_BOTTOM, x_of(END_MS), CURVE_BOTTOM, "stroke=\"#59636e\"");
    snprintf(label, sizeof label, "%s in the last second: at most %d", what, peak);
    text(f, LEFT, BARS_BOTTOM + 24, "#0969da", "start", label);
}

static int draw(int algorithm, const char *directory)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    struct weir_error error;
    struct run run = {0};
    struct weir *w;
    char path[4096];
    o.algorithm = algorithm;
    o.count = COUNT;
    o.period_ns = WEIR_SECOND;
    o.queue = algorithm == WEIR_LEAKY_BUCKET ? COUNT - 1 : 0;
    o.max_keys = 1;
    o.flags = WEIR_EXPLICIT_TIME;
    if (weir_open(&w, &o, &error) != 0) {
        fprintf(stderr, "draw: %s\n", error.text);
        return 1;
    }
    replay(w, &run);
    weir_close(w);
    snprintf(path, sizeof path, "%s/%s.svg", directory, weir_algorithm_name(algorithm));
    FILE *f = fopen(path, "w");
    if (f == NULL) {
        perror(path);
        return 1;
    }
    draw_frame(f, weir_algorithm_name(algorithm));
    draw_bars(f, &run);
    draw_curve(f, &run, algorithm == WEIR_LEAKY_BUCKET ? "released" : "admitted");
    fprintf(f, "</svg>\n");
    return fclose(f) != 0;
}

int main(int argc, char **argv)
{
    int failed = argc != 2;
    for (int a = WEIR_TOKEN_BUCKET; a <= WEIR_SLIDING_LOG && !failed; a++) {
        failed = draw(a, argv[1]);
    }
    return failed;
}
