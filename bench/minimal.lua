-- The reference of bench/fleet --prices: a token bucket as a short script of one's own would have it, with
-- no other verb, no block, no remainder and no check of what is stored. ARGV: us for one unit, burst, cost.
-- Answers {allowed, remaining, us to wait, us until full}.
local interval, burst, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local full_at = tonumber(redis.call('GET', KEYS[1]) or 0)
local lead = math.max(full_at - now, 0)
local room = burst * interval - lead
if cost * interval > room then
    return { 0, math.floor(room / interval), cost * interval - room, lead }
end
lead = lead + cost * interval
redis.call('SET', KEYS[1], now + lead, 'PX', math.ceil(lead / 1000))
return { 1, math.floor(burst - lead / interval), 0, lead }
