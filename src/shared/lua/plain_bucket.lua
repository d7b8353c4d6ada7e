-- The verb `plain`: a check of one token bucket without a wait, of a cost within the quota. This piece
-- comes before the others and makes no function, so it costs little more than its commands. It decides
-- if the key has no state, or a time within the bucket's span. Any other state (with a block or '@', in
-- debt, from a far future, damaged) is left to the rest of the script, which takes `plain` for `check`.
--
-- Answers {now, u, r}: the bucket leads by u us and r / 128000 us after the charge; or -1 - u instead of
-- u if it denies. The node computes the rest (shared/core/script_plain.c).
--
-- Arguments stay text until they are used; redis.call() writes whole numbers with all their digits.
if ARGV[1] == 'plain' then
    local value = redis.call('GET', KEYS[1])
    if ARGV[6] == '0' then -- a rate without a remainder
        local u = tonumber(value or now)
        local span = ARGV[3] * ARGV[5]
        if u and u - now <= span then
            u = u > now and u - now or 0
            local after = u + ARGV[7] * ARGV[5]
            if after > span then
                return { now, -1 - u, 0 }
            end
            redis.call('SET', KEYS[1], now + after, 'PX', math.ceil(after / 1000) + KEEP_MS)
            return { now, after, 0 }
        end
    else
        local PARTS = 128000
        local u, r = now, 0
        if value then
            u, r = string.match(value, '^(%d+):(%d+)$')
            u = tonumber(u or value)
        end
        local x = ARGV[3] * ARGV[6]
        local span_r = x % PARTS
        local span_u = ARGV[3] * ARGV[5] + math.floor(x / PARTS)
        if u and u - now < span_u then
            u, r = u < now and 0 or u - now, u < now and 0 or (r or 0) + 0
            x = ARGV[7] * ARGV[6] + r
            local after_r = x % PARTS
            local after_u = u + ARGV[7] * ARGV[5] + math.floor(x / PARTS)
            if after_u > span_u or after_u == span_u and after_r > span_r then
                return { now, -1 - u, r }
            end
            local state, ttl = now + after_u, after_u
            if after_r > 0 then
                state, ttl = string.format('%.0f:%.0f', state, after_r), ttl + 1
            end
            redis.call('SET', KEYS[1], state, 'PX', math.ceil(ttl / 1000) + KEEP_MS)
            return { now, after_u, after_r }
        end
    end
end
