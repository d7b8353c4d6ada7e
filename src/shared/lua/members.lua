-- The heartbeat of a node: KEYS[1] holds who was seen last when. ARGV: the node, and for how many us a
-- node counts that is not seen. Answers with how many there are. Times from the future, of a clock that
-- was set back, are dropped; whoever is alive comes again.
local function text(number)
    return string.format('%.0f', number)
end
local key, node, alive = KEYS[1], ARGV[1], tonumber(ARGV[2])
redis.call('ZADD', key, text(now), node)
redis.call('ZREMRANGEBYSCORE', key, '-inf', '(' .. text(now - alive))
redis.call('ZREMRANGEBYSCORE', key, '(' .. text(now + alive), '+inf')
redis.call('PEXPIRE', key, text(alive / 1000 + KEEP_MS))
return redis.call('ZCARD', key)
