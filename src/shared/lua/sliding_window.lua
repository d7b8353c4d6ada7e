-- sliding_window: two windows of a us, aligned to b; the previous one counts by the share of it that
-- still lies within a us of now (src/algo/sliding_window.c). State: "index:current:previous".
algorithms['4'] = (function()
    local HALF = 67108864 -- 2^26

    -- a * b for a, b < 2^52, as high * 2^52 + low.
    local function product(a, b)
        local ah, bh = floor(a / HALF), floor(b / HALF)
        local al, bl = a - ah * HALF, b - bh * HALF
        local x, y = ah * bl, al * bh
        local high = ah * bh + floor(x / HALF) + floor(y / HALF)
        local cross = x % HALF + y % HALF -- below 2^27
        local low = cross % HALF * HALF + al * bl
        if low >= HALF * HALF then
            high, low = high + 1, low - HALF * HALF
        end
        return high + floor(cross / HALF), low
    end

    local function exceeds(a, b, c, d) -- a * b > c * d
        local h, l = product(a, b)
        local k, m = product(c, d)
        return h > k or h == k and l > m
    end

    -- floor(a * b / c), exact; the quotient is at most a or b.
    local function mul_div(a, b, c)
        local x = a * (b + 0.0)
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

    -- Whole units left; negative in debt. What counts of the previous window is rounded up.
    local function left(p)
        local passed = now - (p.index * p.a + p.b)
        local gone = passed > 0 and mul_div(p.previous, passed, p.a) or 0
        return p.quota - p.current - p.previous + gone
    end

    -- The first moment of a window at which `counted` in the one before leaves room for `spare`.
    local function room_at(p, counted, spare)
        return counted <= spare and 0 or p.a - mul_div(spare, p.a, counted)
    end

    -- `begun` is from now to the begin of the window, as a rule negative. Times are added to that and
    -- not to the time of day: two centuries on top of it would be more than 2^53.
    local function fits_in(p, begun)
        local spare = p.quota - p.current - p.cost
        if spare >= 0 then
            local e = room_at(p, p.previous, spare)
            if e < p.a then
                return begun + e
            end
        end
        return begun + p.a + room_at(p, p.current, p.quota - p.cost)
    end

    -- How long until both windows count for nothing.
    local function empty_after(p)
        local windows = p.current > 0 and 2 or p.previous > 0 and 1 or 0
        return windows > 0 and p.index * p.a + p.b - now + windows * p.a or 0
    end

    local ops = { wipe = wipe, mark = mark }

    function ops.look(p)
        local value = read(p)
        local index, current, previous = floor((now - p.b) / p.a), 0, 0
        if value then
            local i, c, q = match(value, '^(-?%d+):(%d+):(%d+)$')
            i = tonumber(i)
            if not i then
                return error(DAMAGED .. p.key)
            end
            if i + 1 == index then
                previous = tonumber(c)
            elseif i >= index then
                current, previous = tonumber(c), tonumber(q)
                p.pulled = i > index and i * p.a + p.b > now + SLACK
                index = p.pulled and index or i
            end
        end
        p.index, p.current, p.previous = index, current, previous
        p.left = left(p)
        if verb == 'upto' then
            p.cost = p.blocked and 1 or max(1, min(p.cost, p.left))
        end
        p.verdict = p.cost > p.quota and NEVER or p.cost <= p.left and ALLOW or DENY
    end

    function ops.save(p)
        local value = format('%.0f:%.0f:%.0f', p.index, p.current, p.previous)
        write(p, value, max(empty_after(p), p.index * p.a + p.b - now))
    end

    function ops.done(p, take, pull)
        if take then
            p.current, p.left = p.current + p.cost, p.left - p.cost
        end
        if take or pull then
            ops.save(p)
        end
        local start = p.index * p.a + p.b
        p.remaining = p.left > 0 and p.left or 0
        p.reset = empty_after(p)
        p.stamp = start > now and start or now
        if p.verdict == DENY then
            p.retry = fits_in(p, start - now)
        end
    end

    if rare then
        function ops.charge(p)
            local n = min(p.cost, max(p.quota + p.debt - p.current, 0))
            p.current = p.current + n
            return n
        end

        function ops.refund(p)
            local index = floor((p.wait - p.b) / p.a)
            if index == p.index then
                p.current = max(p.current - p.cost, 0)
            elseif index + 1 == p.index then
                p.previous = max(p.previous - p.cost, 0)
            else
                return false
            end
            return true
        end
    end
    return ops
end)()
