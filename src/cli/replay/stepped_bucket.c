#include "cli/replay/stepped_bucket.h"

#include "base/maths.h"

static void refill(struct stepped_bucket *b, int64_t capacity, int64_t window, int64_t time)
{
    i128 elapsed = (i128)time - b->last;
    if (elapsed <= 0 || window <= 0) {
        return;
    }
    /* elapsed < 2^64 and capacity < 2^63: the product fits in 127 bits. */
    i128 tokens = elapsed * capacity / window;
    if (tokens <= 0) {
        return;
    }
    if (b->tokens + tokens >= capacity) {
        b->tokens = capacity;
        b->last = time;
        return;
    }
    /* Here tokens < capacity, so both results fit in an int64_t and last does not exceed time. */
    b->tokens += (int64_t)tokens;
    b->last += (int64_t)(tokens * window / capacity);
}

bool stepped_bucket_take(struct stepped_bucket *b, int64_t capacity, int64_t window, int64_t time)
{
    refill(b, capacity, window, time);
    if (b->tokens <= 0) {
        return false;
    }
    b->tokens--;
    return true;
}
