-- The verb `plain` for fixed_window (plain_bucket.lua): a check of one key, of a cost within the quota, of
-- windows that are not months. It decides if the key has no state, or one of this window or an earlier
-- one; any other state is left to the rest of the script. Answers {now, count, left}: what is taken of
-- the window after the charge, or -1 - count if it denies, and us until the window ends.
if ARGV[1] == 'plain' then
    local value = redis.call('GET', KEYS[1])
    local index = math.floor((now - ARGV[6]) / ARGV[5])
    local found, count = index, 0
    if value then
        found, count = string.match(value, '^(-?%d+):(%d+)$')
        found = tonumber(found)
    end
    if found and found <= index then
        local left = (index + 1) * ARGV[5] + ARGV[6] - now
        count = found == index and count or 0
        local after = count + ARGV[7]
        if after > ARGV[3] + 0 then
            return { now, -1 - count, left }
        end
        local state = string.format('%.0f:%.0f', index, after)
        redis.call('SET', KEYS[1], state, 'PX', math.ceil(left / 1000) + KEEP_MS)
        return { now, after, left }
    end
end
