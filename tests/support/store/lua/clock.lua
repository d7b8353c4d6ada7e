-- The test sets the time. It stands still while real time passes: keys must not expire meanwhile.
local now = tonumber(redis.call('GET', 'now'))
local KEEP_MS = 3600000
