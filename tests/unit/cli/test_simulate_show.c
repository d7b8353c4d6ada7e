/* How weir simulate shows its results. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "unit/cli/simulate_plan.h"

/* A section of the default plan's algorithms against a shape. */
struct scene {
    struct sim_plan plan;
    struct sim_traffic traffic;
    struct sim_result results[5];
    struct sim_section section;
};

static void set_scene(struct scene *s, const char *shape)
{
    s->plan = default_plan();
    assert_int_equal(sim_traffic_make(&s->plan, shape_of(shape), &s->traffic, NULL), 0);
    for (size_t i = 0; i < 5; i++) {
        struct sim_subject subject;
        assert_int_equal(sim_subject_open(&subject, &s->plan, i, 1, NULL), 0);
        assert_int_equal(
            sim_run(&subject, &s->traffic, s->plan.rate.period_ns, &s->results[i], NULL), 0);
        s->results[i].bound = sim_bound(&s->plan, i, &s->traffic);
        sim_subject_close(&subject);
    }
    s->section = (struct sim_section){&s->plan, &s->traffic, s->results, 5};
}

typedef void (*show_fn)(FILE *out, const struct sim_section *section);

static void show_svg(FILE *out, const struct sim_section *section)
{
    sim_svg(out, section, 1, true);
}

static void show_html(FILE *out, const struct sim_section *section)
{
    sim_html(out, section, 1);
}

static void show_ascii(FILE *out, const struct sim_section *section)
{
    sim_chart(out, section, SIM_ASCII);
}

static void show_blocks(FILE *out, const struct sim_section *section)
{
    sim_chart(out, section, SIM_BLOCKS);
}

static void show_colour(FILE *out, const struct sim_section *section)
{
    sim_chart(out, section, SIM_COLOUR);
}

static char *shown(const struct sim_section *section, show_fn show)
{
    char *text = NULL;
    size_t length = 0;
    FILE *f = open_memstream(&text, &length);
    assert_non_null(f);
    show(f, section);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(strlen(text), length);
    return text;
}

static size_t occurrences(const char *text, const char *what)
{
    size_t n = 0;
    while ((text = strstr(text, what)) != NULL) {
        n++;
        text++;
    }
    return n;
}

static void the_same_result_is_the_same_bytes(void **state)
{
    static const show_fn shows[] = {show_svg, show_html, show_ascii, show_blocks, sim_table};
    struct scene a;
    struct scene b;
    set_scene(&a, "poisson");
    set_scene(&b, "poisson");
    for (size_t i = 0; i < sizeof shows / sizeof shows[0]; i++) {
        char *first = shown(&a.section, shows[i]);
        char *second = shown(&b.section, shows[i]);
        assert_string_equal(first, second);
        free(first);
        free(second);
    }
    sim_traffic_finish(&a.traffic);
    sim_traffic_finish(&b.traffic);
}

static void the_table_has_a_row_for_each_with_all_its_numbers(void **state)
{
    struct scene s;
    set_scene(&s, "edge");
    char *text = shown(&s.section, sim_table);
    assert_non_null(strstr(
        text, "  fixed_window         600       400       200      200 = 2.00x          56 s\n"));
    assert_non_null(strstr(
        text, "  sliding_log          600       200       400      100 = 1.00x          56 s\n"));
    assert_non_null(strstr(
        text, "  token_bucket         600       238       362      119 = 1.19x        560 ms\n"));
    free(text);
    s.results[0].never = 7;
    s.results[1].bindings_count = 1;
    s.results[1].bindings[0] = (struct sim_binding){"login", 3, 4};
    s.traffic.costs = true;
    text = shown(&s.section, sim_table);
    assert_non_null(strstr(text, "fixed_window: of the denied, 7 can never fit\n"));
    assert_non_null(strstr(text, "sliding_window: bound by login: admitted 3, denied 4\n"));
    assert_non_null(strstr(text, "all numbers are units"));
    free(text);
    sim_traffic_finish(&s.traffic);
}

static void the_chart_is_ascii_where_that_was_asked_for(void **state)
{
    struct scene s;
    set_scene(&s, "edge");
    char *ascii = shown(&s.section, show_ascii);
    char *blocks = shown(&s.section, show_blocks);
    char *colour = shown(&s.section, show_colour);
    for (const char *c = ascii; *c != 0; c++) {
        assert_true(*c == '\n' || (*c >= ' ' && *c <= '~'));
    }
    assert_non_null(strstr(blocks, "\xe2\x96\x88"));
    assert_null(strchr(blocks, '\033'));
    assert_non_null(strstr(colour, "\033[36m"));
    free(ascii);
    free(blocks);
    free(colour);
    sim_traffic_finish(&s.traffic);
}

/* Two before the edge and two behind it: each column of the drawing. */
static void the_chart_shows_admitted_below_denied(void **state)
{
    struct scene s;
    set_scene(&s, "edge");
    s.section.results_count = 1;
    char *text = shown(&s.section, show_ascii);
    assert_non_null(strstr(text, "  fixed_window                                                "
                                 "worst 2.00x\n"
                                 "       100 |              .#                            .#\n"
                                 "           |              .#                            .#\n"
                                 "           |             ###.                          ###.\n"
                                 "           |             ###.                          ###.\n"
                                 "           |             ###.                          ###.\n"
                                 "         0 +---------------+--------------+--------------+"
                                 "--------------\n"
                                 "            0            1 min          2 min          3 min   "
                                 "       4 min\n"));
    free(text);
    sim_traffic_finish(&s.traffic);
}

/* In four columns of a chart 1000 high: 1, 90 of 1000, 260 of 1000, 1000. */
static void little_is_not_drawn_as_nothing_nor_as_much(void **state)
{
    static const uint64_t in[] = {1, 90, 260, 1000};
    static const uint64_t all[] = {1, 1000, 1000, 1000};
    struct scene s;
    set_scene(&s, "edge");
    struct sim_result r = {.name = "x"};
    for (size_t i = 0; i < 4; i++) {
        r.admitted_in[i * SIM_BINS / 60] = in[i];
        r.offered_in[i * SIM_BINS / 60] = all[i];
    }
    s.section.results = &r;
    s.section.results_count = 1;
    char *ascii = shown(&s.section, show_ascii);
    char *blocks = shown(&s.section, show_blocks);
    assert_non_null(strstr(ascii, "      1000 | ..#\n"
                                  "           | ..#\n"
                                  "           | ..#\n"
                                  "           | ..#\n"
                                  "           |####\n"));
    assert_non_null(strstr(blocks, "│ ░░█\n           │ ░░█\n           │ ░░█\n"
                                   "           │ ░▂█\n           │▁▄██\n"));
    s.section.results = s.results;
    free(ascii);
    free(blocks);
    sim_traffic_finish(&s.traffic);
}

static void no_line_of_the_terminal_is_wider_than_eighty_columns(void **state)
{
    struct scene s;
    for (size_t row = 0; sim_shape_name(row) != NULL; row++) {
        set_scene(&s, sim_shape_name(row));
        char *parts[] = {shown(&s.section, show_ascii), shown(&s.section, sim_table)};
        for (int i = 0; i < 2; i++) {
            for (const char *line = parts[i]; *line != 0; line += strcspn(line, "\n") + 1) {
                assert_in_range(strcspn(line, "\n"), 0, 80);
            }
            free(parts[i]);
        }
        sim_traffic_finish(&s.traffic);
    }
}

static enum sim_style style_in(const char *lang, const char *term, const char *no_color, bool tty)
{
    (void)unsetenv("LC_ALL");
    (void)unsetenv("LC_CTYPE");
    (void)setenv("LANG", lang, 1);
    (void)setenv("TERM", term, 1);
    (void)setenv("NO_COLOR", no_color, 1);
    return sim_terminal_style(false, tty);
}

static void the_terminal_decides_how_it_is_drawn(void **state)
{
    assert_int_equal(style_in("C.UTF-8", "xterm", "", true), SIM_COLOUR);
    assert_int_equal(style_in("de_DE.utf8", "xterm", "", true), SIM_COLOUR);
    assert_int_equal(style_in("C.UTF-8", "xterm", "1", true), SIM_BLOCKS);
    assert_int_equal(style_in("C.UTF-8", "dumb", "", true), SIM_BLOCKS);
    assert_int_equal(style_in("C.UTF-8", "xterm", "", false), SIM_BLOCKS);
    assert_int_equal(style_in("C", "xterm", "", true), SIM_ASCII);
    assert_int_equal(style_in("", "xterm", "", true), SIM_ASCII);
    assert_int_equal(style_in("C.UTF-8", "xterm", "", true), SIM_COLOUR);
    (void)setenv("LC_ALL", "C", 1); /* the strongest of the three */
    assert_int_equal(sim_terminal_style(false, true), SIM_ASCII);
    (void)setenv("LC_ALL", "C.UTF-8", 1);
    assert_int_equal(sim_terminal_style(true, true), SIM_ASCII);
}

static void the_picture_has_a_panel_for_each_and_needs_nothing_else(void **state)
{
    struct scene s;
    set_scene(&s, "edge");
    char *svg = shown(&s.section, show_svg);
    char *html = shown(&s.section, show_html);
    assert_int_equal(occurrences(svg, "worst "), 5);
    assert_int_equal(occurrences(svg, "worst 2.00x"), 1);
    assert_int_equal(occurrences(svg, "prefers-color-scheme:dark"), 1);
    assert_int_equal(occurrences(svg, "http"), 1); /* the name of the format */
    assert_null(strstr(svg, "<script"));
    assert_int_equal(occurrences(html, "http"), 2);
    assert_null(strstr(html, "<script"));
    assert_null(strstr(html, "<link"));
    assert_int_equal(occurrences(html, "<tr><td>"), 5);
    assert_non_null(strstr(html, "<title>weir simulate, edge</title>"));
    free(svg);
    free(html);
    sim_traffic_finish(&s.traffic);
}

static void only_more_than_the_bound_of_the_algorithm_is_red(void **state)
{
    struct scene s;
    set_scene(&s, "edge");
    char *svg = shown(&s.section, show_svg);
    char *html = shown(&s.section, show_html);
    assert_null(strstr(svg, "class=\"breach\"")); /* a fixed window may admit twice its quota */
    assert_null(strstr(svg, "over\""));
    assert_null(strstr(html, "<td class=\"over\">"));
    free(svg);
    free(html);
    s.results[2].bound = 99; /* the log admits 100 */
    svg = shown(&s.section, show_svg);
    html = shown(&s.section, show_html);
    assert_int_equal(occurrences(svg, "class=\"breach\""), 1);
    assert_int_equal(occurrences(svg, "class=\"end strong over\""), 1);
    assert_int_equal(occurrences(html, "<td class=\"over\">"), 1);
    assert_non_null(strstr(html, "<td class=\"over\">100 = 1.00x</td>"));
    free(svg);
    free(html);
    sim_traffic_finish(&s.traffic);
}

static void show_two(FILE *out, const struct sim_section *section)
{
    struct sim_traffic other = *section->traffic;
    other.name = "herd";
    struct sim_section sections[] = {*section, *section};
    sections[1].traffic = &other;
    sim_html(out, sections, 2);
}

static void a_page_of_several_shapes_names_all_of_them(void **state)
{
    struct scene s;
    set_scene(&s, "edge");
    char *html = shown(&s.section, show_two);
    assert_non_null(
        strstr(html, "<title>weir simulate, 2 shapes of traffic: edge, herd</title>\n<style>"));
    free(html);
    sim_traffic_finish(&s.traffic);
}

static void show_xml_text(FILE *out, const struct sim_section *section)
{
    sim_xml_text(out, section->traffic->name);
}

static void names_are_text_not_markup(void **state)
{
    static const struct {
        const char *name, *expected;
    } rows[] = {
        {"a<b>&\"c\".yaml", "a&lt;b&gt;&amp;&quot;c&quot;.yaml"},
        {"gr\xc3\xbc\xc3\x9f.yaml", "gr\xc3\xbc\xc3\x9f.yaml"},
        {"\xf0\x9f\x8c\x8a\xe2\x82\xac", "\xf0\x9f\x8c\x8a\xe2\x82\xac"},
        {"a\x01\t\x7f\033", "a????"},
        {"\xff\xc3(\xc3", "?"
                          "?(?"},
        {"\xc0\xaf\xed\xa0\x80\xe2\x82", "???????"},
        {"\xef\xbf\xbf\xe2\x80\xae.", "??."}, /* no character; a change of direction */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sim_traffic t = {.name = rows[i].name};
        struct sim_section section = {.traffic = &t};
        char *text = shown(&section, show_xml_text);
        assert_string_equal(text, rows[i].expected);
        free(text);
    }
}

static void of_a_long_name_the_end_is_drawn(void **state)
{
    struct scene s;
    set_scene(&s, "edge");
    s.results[0].name = "/etc/weir/\xc3\xa4\xc3\xa4/a/rather/long/path/of/rules.yaml";
    s.traffic.about = "0123456789012345678901234567890123456789012345678901234567890123456789"
                      "0123456789012345678901234567\xc3\xa4\xc3\xa4xyz";
    char *svg = shown(&s.section, show_svg);
    assert_non_null(strstr(svg, ">\xe2\x80\xa6\xc3\xa4/a/rather/long/path/of/rules.yaml</text>"));
    assert_non_null(strstr(svg, "4567\xc3\xa4</text>"));
    assert_null(strchr(svg, '?'));
    free(svg);
    sim_traffic_finish(&s.traffic);
}

static void times_are_shown_in_the_unit_that_suits_them(void **state)
{
    static const struct {
        uint64_t ns;
        const char *text;
    } rows[] = {
        {0, "0"},
        {1, "1 ns"},
        {999, "999 ns"},
        {1500, "1500 ns"},
        {2500, "2.5 us"},
        {560 * WEIR_MILLISECOND, "560 ms"},
        {1999999, "2000 us"},
        {59400 * WEIR_MILLISECOND, "59.4 s"},
        {2 * WEIR_SECOND + 4 * WEIR_MILLISECOND, "2 s"},
        {2 * WEIR_SECOND + 5 * WEIR_MILLISECOND, "2.01 s"},
        {3 * WEIR_SECOND - 1, "3 s"},
        {WEIR_MINUTE, "1 min"},
        {90 * WEIR_SECOND, "90 s"},
        {150 * WEIR_SECOND, "2.5 min"},
        {WEIR_DAY, "1 d"},
        {UINT64_MAX, "213503.98 d"},
    };
    char buffer[SIM_TEXT];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_string_equal(sim_time(rows[i].ns, buffer), rows[i].text);
    }
    assert_string_equal(sim_time_like(90 * WEIR_SECOND, WEIR_MINUTE, buffer), "1.5 min");
    assert_string_equal(sim_multiple(2, 3, buffer), "0.67x");
    assert_string_equal(sim_multiple(UINT64_MAX, 1, buffer), "18446744073709551615.00x");
}

static void the_time_axis_has_few_marks_and_they_are_ends_of_windows(void **state)
{
    struct sim_plan plan = default_plan();
    struct sim_traffic t = {0};
    struct sim_section section = {.plan = &plan, .traffic = &t};
    static const uint64_t windows[] = {1, 2, 4, 8, 9, 30, 41, 100, 1000, 999999, 15000000};
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        t.duration_ns = windows[i] * WEIR_MINUTE;
        uint64_t step = sim_axis_step(&section);
        assert_true(step % WEIR_MINUTE == 0);
        assert_in_range(t.duration_ns / step, windows[i] < 4 ? windows[i] : 3, 8);
    }
    t.duration_ns = WEIR_SECOND; /* part of a window */
    assert_true(sim_axis_step(&section) == WEIR_SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_result_is_the_same_bytes),
        cmocka_unit_test(the_table_has_a_row_for_each_with_all_its_numbers),
        cmocka_unit_test(the_chart_is_ascii_where_that_was_asked_for),
        cmocka_unit_test(the_chart_shows_admitted_below_denied),
        cmocka_unit_test(little_is_not_drawn_as_nothing_nor_as_much),
        cmocka_unit_test(no_line_of_the_terminal_is_wider_than_eighty_columns),
        cmocka_unit_test(the_terminal_decides_how_it_is_drawn),
        cmocka_unit_test(the_picture_has_a_panel_for_each_and_needs_nothing_else),
        cmocka_unit_test(only_more_than_the_bound_of_the_algorithm_is_red),
        cmocka_unit_test(a_page_of_several_shapes_names_all_of_them),
        cmocka_unit_test(names_are_text_not_markup),
        cmocka_unit_test(of_a_long_name_the_end_is_drawn),
        cmocka_unit_test(times_are_shown_in_the_unit_that_suits_them),
        cmocka_unit_test(the_time_axis_has_few_marks_and_they_are_ends_of_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
