-- check, peek and upto of one token bucket, in one piece that makes no functions: for calls that
-- are not `plain`, with the full answer of decide.lua. It decides as bucket.lua does, whose times are
-- pairs of us and a remainder. A state that is '@', or leads further than quota and debt, one with a block
-- that is over, a cost beyond the quota, and anything that is no state are left to the rest of the script.
if #KEYS == 1 and #ARGV == 8 and (ARGV[1] == 'check' or ARGV[1] == 'peek' or ARGV[1] == 'upto') then
    local PARTS, floor = 128000, math.floor
    local a, b, cost, wait = ARGV[5] + 0, ARGV[6] + 0, ARGV[7] + 0, ARGV[8] + 0
    local value = redis.call('GET', KEYS[1])
    local u, r, block = now, 0, 0
    if value then
        u = tonumber(value)
        if not u then
            local state, till = string.match(value, '^([%d:]*)!(%d+)$')
            block = (till or 0) + 0
            if state == '' then
                u = now
            else
                u, r = string.match(state or value, '^(%d+):(%d+)$')
                u, r = tonumber(u or state), (r or 0) + 0
            end
        end
    end
    local x = ARGV[3] * b
    local span_r = x % PARTS
    local span_u = ARGV[3] * a + floor(x / PARTS)
    local far = span_u + ARGV[4] * a + 1000000 -- with the debt, and what clocks may differ
    if u and (block == 0 or block > now) and cost <= ARGV[3] + 0 and u - now < far then
        u = u - now
        if u < 0 then
            u, r = 0, 0
        end
        local left_u, left_r = span_u - u, span_r - r
        if left_r < 0 then
            left_u, left_r = left_u - 1, left_r + PARTS
        end
        local room = left_u < 0 and 0 or floor(left_u / a) -- whole units between the lead and the span
        if b > 0 and left_u >= 0 then
            room = floor((left_u + left_r / PARTS) / (a + b / PARTS)) + 1 -- may be one off
            repeat
                x = room * b
                local unit_r = x % PARTS
                local unit_u = room * a + floor(x / PARTS)
                local much = unit_u > left_u or unit_u == left_u and unit_r > left_r
                room = much and room - 1 or room
            until not much
        end
        local blocked = block > 0
        if ARGV[1] == 'upto' then
            cost = (blocked or room < 1) and 1 or cost < room and cost or room
        end
        x = cost * b
        local cost_r = x % PARTS
        local cost_u = cost * a + floor(x / PARTS)
        local limit_u, limit_r = span_u - cost_u, span_r - cost_r
        if wait > 0 then
            x = (ARGV[3] + ARGV[4]) * (b + 0.0) -- the furthest that the debt reaches
            local reach_r = floor(x % PARTS)
            local reach_u = (ARGV[3] + ARGV[4]) * a + floor(x / PARTS)
            local debt_u, debt_r = reach_u - span_u, reach_r - span_r
            if debt_r < 0 then
                debt_u, debt_r = debt_u - 1, debt_r + PARTS
            end
            if wait <= debt_u then
                debt_u, debt_r = wait, 0
            end
            limit_u, limit_r = limit_u + debt_u, limit_r + debt_r
        end
        if limit_r < 0 then
            limit_u, limit_r = limit_u - 1, limit_r + PARTS
        elseif limit_r >= PARTS then
            limit_u, limit_r = limit_u + 1, limit_r - PARTS
        end
        local allowed = u < limit_u or u == limit_u and r <= limit_r
        local retry = allowed and 0 or u - limit_u + (r > limit_r and 1 or 0)
        local take = allowed and not blocked and ARGV[1] ~= 'peek'
        local delay = 0
        if take or allowed and wait > 0 then
            local after_u, after_r = u + cost_u, r + cost_r
            if after_r >= PARTS then
                after_u, after_r = after_u + 1, after_r - PARTS
            end
            if wait > 0 and not blocked then
                delay = after_u - span_u + (after_r > span_r and 1 or 0)
                delay = delay > 0 and delay or 0
            end
            if take then
                u, r, room = after_u, after_r, room > cost and room - cost or 0
                local state = now + u
                if r > 0 then
                    state = string.format('%.0f:%.0f', state, r)
                end
                redis.call('SET', KEYS[1], state, 'PX', math.ceil((r == 0 and u or u + 1) / 1000) + KEEP_MS)
            end
        end
        local reset = r == 0 and u or u + 1
        if blocked then
            local left = block < 9007199254740992 and block - now or -1
            allowed, room = false, 0
            retry = left < 0 and -1 or left > retry and left or retry
            reset = left < 0 and -1 or left > reset and left or reset
        end
        return { allowed and 1 or 2, blocked and 1 + block % 2 or 0, room, take and cost or 0, retry, reset, delay, now, 0 }
    end
end
