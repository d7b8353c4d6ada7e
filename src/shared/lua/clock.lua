-- The time is the store's own, read once: every node of a fleet decides by one clock. There is no
-- argument for it. (Tests have another piece in the place of this one: tests/support/store/lua.)
local now = redis.call('TIME')
now = now[1] * 1000000 + now[2]
local KEEP_MS = 1000 -- beyond the last use of a state: clocks may be set back this far (SLACK)
