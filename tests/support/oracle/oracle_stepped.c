#include "support/oracle/oracle_model.h"

bool oracle_stepped_take(struct oracle_stepped *s, int64_t capacity, int64_t window, int64_t time)
{
    if (!s->known) {
        *s = (struct oracle_stepped){true, capacity, time};
    }
    oracle_int elapsed = (oracle_int)time - s->last;
    oracle_int refill = elapsed > 0 && window > 0 ? elapsed * capacity / window : 0;
    if (refill > 0 && s->tokens + refill >= capacity) {
        s->tokens = capacity;
        s->last = time;
    } else if (refill > 0) {
        s->tokens += refill;
        s->last += refill * window / capacity;
    }
    if (s->tokens == 0) {
        return false;
    }
    s->tokens--;
    return true;
}
