-- What token_bucket and leaky_bucket share: the generic cell rate algorithm (src/algo/bucket.h). The
-- state is when the bucket will be full again: whole us and, where there is one, ':' and a remainder
-- in 1/128000 us. That is 2^-7 ns, of which every local time unit is a multiple; so a script rounds
-- as the local code does, and a state means the same whatever the rate becomes. Most rates have no
-- remainder, and the value is a number, which the store keeps in the place of a pointer.
--
-- Times are pairs (us, remainder). p.a, p.b: the time of one unit; p.u, p.r: how far the state leads
-- now; span: the most that it may; reach: with debt; far: and with p.beyond, where it is given.
--
-- A state that leads further than `far` is of a clock that was set back, or of a node that knows a
-- larger bucket, for which it is true: a fleet does not change its limits in one instant. Who meets
-- it takes it for `far` from now on, and does not forget what it was: the state becomes "what it was
-- @ since when". For each reader it is the lesser of what it was and its own `far` from that time on.
-- Charges move both times; so whoever knows the larger bucket counts what the others let in, and keys
-- get no more than it would give them. It writes no '@': to the next who meets it, it is new again.
local PARTS = 128000
local LATEST = 4 * FOREVER -- no state is of a time behind this
local SET_BACK = -1 -- in the place of p.beyond

local function times(n, u, r)
    local x = n * (r + 0.0)
    return n * u + floor(x / PARTS), floor(x % PARTS)
end

-- Brings r back into its range.
local function carry(u, r)
    if r < 0 then
        return u - 1, r + PARTS
    elseif r >= PARTS then
        return u + 1, r - PARTS
    end
    return u, r
end

-- How often the unit goes into (u, r); 0 if that is negative. A quotient of doubles may be one off.
local function quotient(p, u, r)
    if u < 0 then
        return 0
    elseif p.b == 0 then
        return floor(u / p.a)
    end
    local n = floor((u + r / PARTS) / (p.a + p.b / PARTS))
    local tu, tr = times(n, p.a, p.b)
    if tu > u or tu == u and tr > r then
        return n - 1
    end
    tu, tr = carry(tu + p.a, tr + p.b)
    return (tu > u or tu == u and tr > r) and n or n + 1
end

-- How far a state leads now, from its text: negative if the bucket is full since. p.was_u, p.was_r: how
-- far what it was leads, if somebody took it for less.
local function lead_of(p, text)
    local u, r = tonumber(text), 0
    if u and u < LATEST then -- 'nan' and 'inf' are numbers, too
        return u - now, 0
    end
    u, r = match(text, '^(%d+):(%d+)$')
    if u then
        return u - now, tonumber(r)
    end
    local since_u, since_r
    u, r, since_u, since_r = match(text, '^(%d+):(%d+)@(-?%d+):(%d+)$')
    if not u then
        return error(DAMAGED .. p.key)
    end
    u, r = u - now, tonumber(r)
    local most_u, most_r = times(p.quota + p.debt + max(p.beyond or 0, 0), p.a, p.b)
    most_u, most_r = carry(since_u - now + most_u, since_r + most_r)
    if most_u < u or most_u == u and most_r < r then
        p.was_u, p.was_r = u, r
        return most_u, most_r
    end
    return u, r
end

-- How far the key's state leads now.
local function lead(p)
    local value = read(p)
    if not value then
        return 0, 0
    end
    local u, r = lead_of(p, value)
    if u < 0 then
        return 0, 0
    end
    return u, r
end

-- The text of a state, and us after which it does not lead any more.
local function state_of(p)
    local u, r = p.u, p.r
    if not p.more_u then
        return format(r == 0 and '%.0f' or '%.0f:%.0f', now + u, r), r == 0 and u or u + 1
    end
    local since_u, since_r = carry(u - p.far_u, r - p.far_r)
    u, r = carry(u + p.more_u, r + p.more_r)
    return format('%.0f:%.0f@%.0f:%.0f', now + u, r, now + since_u, since_r), u + 1
end

local function save(p)
    write(p, state_of(p))
end

-- A lead as far as it can be true for this limit. p.more_u, p.more_r: what it was leads by so much more.
-- Nothing of that is remembered where the node has seen for itself that the clock was set back.
local function at_most(p, u, r)
    local far_u, far_r = times(p.quota + p.debt + max(p.beyond or 0, 0), p.a, p.b)
    if u > far_u + SLACK or u == far_u + SLACK and r > far_r then
        if not p.was_u then
            p.was_u, p.was_r = u, r
        end
        u, r, p.pulled = far_u, far_r, true
    end
    if p.was_u and p.beyond == SET_BACK then
        p.pulled = true
    elseif p.was_u then
        local more_u, more_r = carry(p.was_u - u, p.was_r - r)
        if more_u >= 0 then
            p.more_u, p.more_r, p.far_u, p.far_r = more_u, more_r, far_u, far_r
        end
    end
    return u, r
end

-- limit(p, cu, cr): the furthest lead with which a cost of (cu, cr) is allowed that can wait.
-- delay(p): after how long an allowed call is to act.
-- lead, save: those above, or others of a state that holds more.
-- queue: units are places, of which only the last can come back.
local function bucket(limit, delay, lead, save, queue)
    local ops = { save = save, wipe = wipe, mark = mark }

    function ops.look(p)
        local span_u, span_r = times(p.quota, p.a, p.b)
        p.span_u, p.span_r = span_u, span_r
        local u, r = lead(p)
        if u > span_u or p.wait > 0 or rare or p.was_u then
            p.reach_u, p.reach_r = times(p.quota + p.debt, p.a, p.b)
            u, r = at_most(p, u, r)
        end
        p.u, p.r = u, r
        if verb == 'upto' then
            local room = quotient(p, carry(span_u - u, span_r - r))
            p.cost = p.blocked and 1 or max(1, min(p.cost, room))
        end
        if p.cost > p.quota then
            p.verdict = NEVER
            return
        end
        local cu, cr = times(p.cost, p.a, p.b)
        local lu, lr
        if p.wait > 0 then
            lu, lr = limit(p, cu, cr)
        else
            lu, lr = carry(span_u - cu, span_r - cr)
        end
        p.limit_u, p.limit_r = lu, lr
        p.verdict = (u < lu or u == lu and r <= lr) and ALLOW or DENY
    end

    function ops.done(p, take, pull)
        if take then
            local u, r = times(p.cost, p.a, p.b)
            p.u, p.r = carry(p.u + u, p.r + r)
        end
        if take or pull then
            save(p)
        end
        p.remaining = quotient(p, carry(p.span_u - p.u, p.span_r - p.r))
        p.reset = p.r == 0 and p.u or p.u + 1
        p.stamp = now
        if p.verdict == DENY then
            p.retry = p.u - p.limit_u + (p.r > p.limit_r and 1 or 0)
        elseif p.verdict == ALLOW then
            p.delay = delay(p)
        end
    end

    if rare then
        function ops.charge(p)
            local room = quotient(p, carry(p.reach_u - p.u, p.reach_r - p.r))
            local n = min(p.cost, room)
            local u, r = times(n, p.a, p.b)
            p.u, p.r = carry(p.u + u, p.r + r)
            return n
        end

        -- A roll-back leaves what was taken since the charge ahead of now: it returns no unit that has
        -- refilled since.
        function ops.refund(p)
            local least_u, least_r = 0, 0
            if queue and p.wait ~= now + (p.r == 0 and p.u or p.u + 1) then
                return false
            elseif verb == 'undo' and now + p.u >= p.wait then
                least_u, least_r = now + p.u - p.wait, p.r
            end
            local u, r = carry(p.u - least_u, p.r - least_r)
            if u < 0 or u == 0 and r == 0 then
                return false
            end
            if p.cost > quotient(p, u, r) then
                p.u, p.r = least_u, least_r
            else
                local u, r = times(p.cost, p.a, p.b)
                p.u, p.r = carry(p.u - u, p.r - r)
            end
            return true
        end
    end
    return ops
end
