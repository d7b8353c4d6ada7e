-- What token_bucket and leaky_bucket share: the generic cell rate algorithm (src/algo/bucket.h). The
-- state is when the bucket will be full again: whole us and, where there is one, ':' and a remainder
-- in 1/128000 us. That is 2^-7 ns, of which every local time unit is a multiple; so a script rounds
-- as the local code does, and a state means the same whatever the rate becomes. Most rates have no
-- remainder, and the value is a number, which the store keeps in the place of a pointer.
--
-- Times are pairs (us, remainder). p.a, p.b: the time of one unit.
local PARTS = 128000

local function times(n, u, r)
    local x = n * r
    return n * u + floor(x / PARTS), x % PARTS
end

local function plus(au, ar, bu, br)
    local r = ar + br
    if r >= PARTS then
        return au + bu + 1, r - PARTS
    end
    return au + bu, r
end

local function minus(au, ar, bu, br)
    local r = ar - br
    if r < 0 then
        return au - bu - 1, r + PARTS
    end
    return au - bu, r
end

local function above(au, ar, bu, br)
    return au > bu or au == bu and ar > br
end

local function round_up(u, r)
    return r > 0 and u + 1 or u
end

-- How often the unit goes into x >= 0. The quotient of doubles may be one off.
local function quotient(p, u, r)
    if p.b == 0 then
        return floor(u / p.a)
    end
    local n = floor((u + r / PARTS) / (p.a + p.b / PARTS))
    local tu, tr = times(n, p.a, p.b)
    if above(tu, tr, u, r) then
        return n - 1
    end
    tu, tr = plus(tu, tr, p.a, p.b)
    return above(tu, tr, u, r) and n or n + 1
end

-- p.u, p.r: how far the state leads now.
local function bucket_open(p)
    local value = read(p)
    p.u, p.r, p.pulled = 0, 0, false
    p.span_u, p.span_r = times(p.quota, p.a, p.b)
    p.reach_u, p.reach_r = times(p.quota + p.debt, p.a, p.b)
    if not value then
        return
    end
    local u, r = tonumber(value), 0
    if not u then
        u, r = match(value, '^(%d+):(%d+)$')
        u, r = tonumber(u), tonumber(r)
    end
    if not u then
        return damaged(p)
    end
    if u >= now then
        p.u, p.r = u - now, r
        if above(p.u, p.r, p.reach_u + SLACK, p.reach_r) then
            p.u, p.r, p.pulled = p.reach_u, p.reach_r, true
        end
    end
end

local function bucket_room(p)
    if above(p.u, p.r, p.span_u, p.span_r) then
        return 0
    end
    return quotient(p, minus(p.span_u, p.span_r, p.u, p.r))
end

local function bucket_take(p, n)
    local u, r = times(n, p.a, p.b)
    p.u, p.r = plus(p.u, p.r, u, r)
end

local function bucket_save(p)
    local u = now + p.u
    write(p, p.r == 0 and format('%.0f', u) or format('%.0f:%.0f', u, p.r), round_up(p.u, p.r))
end

local function bucket_charge(p)
    if above(p.u, p.r, p.reach_u, p.reach_r) then
        return 0
    end
    local n = min(p.cost, quotient(p, minus(p.reach_u, p.reach_r, p.u, p.r)))
    bucket_take(p, n)
    return n
end

-- First in, first out: a charge older than the reach has drained; nothing is left to return.
local function bucket_refund(p)
    if now - p.wait >= round_up(p.reach_u, p.reach_r) or p.u == 0 and p.r == 0 then
        return false
    end
    if p.cost > quotient(p, p.u, p.r) then
        p.u, p.r = 0, 0
    else
        local u, r = times(p.cost, p.a, p.b)
        p.u, p.r = minus(p.u, p.r, u, r)
    end
    return true
end

local function bucket_stamp()
    return now
end

-- A wait, at most the pair (u, r).
local function patience(wait, u, r)
    if wait > u then
        return u, r
    end
    return wait, 0
end

-- limit(p): the furthest lead with which p.cost is still allowed.
local function bucket_ops(limit, delay)
    return {
        open = bucket_open,
        room = bucket_room,
        fits = function(p)
            return not above(p.u, p.r, limit(p))
        end,
        take = bucket_take,
        save = bucket_save,
        charge = bucket_charge,
        refund = bucket_refund,
        tell = function(p)
            p.remaining, p.reset, p.delay = bucket_room(p), round_up(p.u, p.r), 0
            if p.verdict == DENY then
                p.retry = round_up(minus(p.u, p.r, limit(p)))
            elseif p.verdict == ALLOW then
                p.delay = delay(p)
            end
        end,
        stamp = bucket_stamp,
        wipe = wipe,
        mark = mark,
    }
end
