/* weir_open() with arbitrary options: a named error with a text, or a limiter that answers. */
#include <stdlib.h>
#include <string.h>

#include <weir.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition) {
        abort();
    }
}

static void use(struct weir *w, const struct weir_options *o)
{
    static const uint64_t costs[] = {1, 2, 1000, UINT64_MAX};
    struct weir_answer a;
    for (int i = 0; i < 8; i++) {
        int e = weir_check_at(w, "key", 3, costs[i % 4], o->period_ns * (uint64_t)i / 3, &a);
        require(e == 0 || e == WEIR_ETIME);
        if (e == 0) {
            require(a.remaining <= a.quota);
            require(a.verdict != WEIR_DENY || a.retry_after_ns >= 1);
            require(a.verdict != WEIR_NEVER || a.retry_after_ns == WEIR_FOREVER);
        }
    }
    (void)weir_change(w, o->max_debt, o->queue, NULL);
    (void)weir_sweep_at(w, UINT64_MAX, o->offset_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    struct weir_error error;
    struct weir *w = NULL;
    uint64_t bytes = 0;
    if (size > sizeof o) {
        size = sizeof o;
    }
    memcpy(&o, data, size);
    /* Not the fuzzer's: pointers, a size beyond the struct, and memory without end. */
    o.path = NULL;
    o.clock = NULL;
    o.clock_arg = NULL;
    o.size = o.size < sizeof o ? o.size : sizeof o;
    o.max_keys =
        o.max_keys > 1000 && o.max_keys < UINT64_C(1) << 41 ? o.max_keys % 1000 + 1 : o.max_keys;
    o.flags |= WEIR_EXPLICIT_TIME;
    error.text[0] = '\0';
    int known = weir_size(&o, &bytes, &error);
    require(known <= 0);
    if (known == 0 && bytes > 100 << 20) {
        return 0; /* a sliding log of many units: too much to make each time */
    }
    int e = weir_open(&w, &o, &error);
    require(e <= 0 && (e == 0) == (w != NULL));
    require(known == 0 || e == known);
    require(e == 0 || (error.code == e && strlen(error.text) > 0));
    if (e == 0) {
        use(w, &o);
    }
    weir_close(w);
    return 0;
}
