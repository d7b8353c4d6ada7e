-- sliding_window: two windows of a us, aligned to b; the previous one counts by the share of it that
-- still lies within a us of now (src/algo/sliding_window.c). State: "index:current:previous".
algorithms['4'] = (function()
    local HALF = 67108864 -- 2^26

    -- a * b for a, b < 2^52, as high * 2^52 + low.
    local function product(a, b)
        local ah, bh = floor(a / HALF), floor(b / HALF)
        local al, bl = a - ah * HALF, b - bh * HALF
        local high, low = ah * bh, al * bl
        local function add(cross)
            high, low = high + floor(cross / HALF), low + cross % HALF * HALF
            if low >= HALF * HALF then
                high, low = high + 1, low - HALF * HALF
            end
        end
        add(ah * bl)
        add(al * bh)
        return high, low
    end

    local function exceeds(a, b, c, d) -- a * b > c * d
        local h, l = product(a, b)
        local k, m = product(c, d)
        return h > k or h == k and l > m
    end

    -- floor(a * b / c), exact; the quotient is at most a or b.
    local function mul_div(a, b, c)
        local x = a * b
        if x < FOREVER then
            return floor(x / c)
        end
        local q = floor(x / c)
        while exceeds(q, c, a, b) do
            q = q - 1
        end
        while not exceeds(q + 1, c, a, b) do
            q = q + 1
        end
        return q
    end

    local function start_of(p, index)
        return index * p.a + p.b
    end

    -- Whole units left; negative in debt. What counts of the previous window is rounded up.
    local function left(p)
        local passed = max(now - start_of(p, p.index), 0)
        return p.quota - p.current - (p.previous - mul_div(p.previous, passed, p.a))
    end

    -- The first moment of a window at which `counted` in the one before leaves room for `spare`.
    local function room_at(p, counted, spare)
        return counted <= spare and 0 or p.a - mul_div(spare, p.a, counted)
    end

    local function fits_at(p)
        local start = start_of(p, p.index)
        local spare = p.quota - p.current - p.cost
        if spare >= 0 then
            local e = room_at(p, p.previous, spare)
            if e < p.a then
                return start + e
            end
        end
        return start + p.a + room_at(p, p.current, p.quota - p.cost)
    end

    local function empty_after(p)
        if p.current > 0 then
            return start_of(p, p.index + 2) - now
        end
        return p.previous > 0 and start_of(p, p.index + 1) - now or 0
    end

    return {
        open = function(p)
            local value = read(p)
            p.index, p.current, p.previous = floor((now - p.b) / p.a), 0, 0
            p.pulled = false
            if not value then
                return
            end
            local index, current, previous = match(value, '^(-?%d+):(%d+):(%d+)$')
            index = tonumber(index)
            if not index then
                return damaged(p)
            end
            if index + 1 == p.index then
                p.previous = tonumber(current)
            elseif index >= p.index then
                p.pulled = index > p.index and start_of(p, index) > now + SLACK
                p.index = p.pulled and p.index or index
                p.current, p.previous = tonumber(current), tonumber(previous)
            end
        end,
        room = function(p)
            return max(left(p), 0)
        end,
        fits = function(p)
            return p.cost <= left(p)
        end,
        take = function(p, n)
            p.current = p.current + n
        end,
        save = function(p)
            local value = format('%.0f:%.0f:%.0f', p.index, p.current, p.previous)
            write(p, value, max(empty_after(p), start_of(p, p.index) - now))
        end,
        charge = function(p)
            local n = min(p.cost, max(p.quota + p.debt - p.current, 0))
            p.current = p.current + n
            return n
        end,
        refund = function(p)
            local index = floor((p.wait - p.b) / p.a)
            if index == p.index then
                p.current = max(p.current - p.cost, 0)
            elseif index + 1 == p.index then
                p.previous = max(p.previous - p.cost, 0)
            else
                return false
            end
            return true
        end,
        tell = function(p)
            p.remaining, p.reset, p.delay = max(left(p), 0), empty_after(p), 0
            if p.verdict == DENY then
                p.retry = fits_at(p) - now
            end
        end,
        stamp = function(p)
            return max(now, start_of(p, p.index))
        end,
        wipe = wipe,
        mark = mark,
    }
end)()
