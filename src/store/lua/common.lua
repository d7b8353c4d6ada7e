-- What all algorithms share. Numbers are doubles: whole and below 2^53, or the C side would not have
-- let the limit pass. They become text by %.0f alone: tostring() and cjson keep 14 digits.
--
-- A part `p` is one limit and one key: what the question says (quota, debt, a, b, cost, wait) and
-- what ops.open() makes of the key's value as of now. Each algorithm is a table of operations:
--
--   open(p)    reads the key; sets p.found (a state is there), p.block (end of its block, or 0) and
--              p.pulled (the state was from a far future and has been brought down)
--   room(p)    whole units that could be taken now
--   fits(p)    may p.cost be taken?
--   take(p,n)  takes n units; save(p) stores what has come of it
--   charge(p)  takes what fits of p.cost within quota and debt; says how much
--   refund(p)  gives p.cost back, charged at p.wait; true if that changed the state
--   tell(p)    sets remaining, retry, reset, delay from cost, wait, verdict and granted
--   stamp(p)   under which time units are counted
--   wipe(p)    stores no state, keeps the block; mark(p) stores p.block, keeps the state
local SLACK = 1000000          -- us that clocks may differ
local FOREVER = 9007199254740992 -- 2^53
local CENTURY = 3155760000000000 -- us: the time to live of what has no end
local ALLOW, DENY, NEVER = 0, 1, 2
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
local format, match = string.format, string.match
local algorithms = {}

-- Milliseconds to keep a state that is as good as new in `fresh` us: only ever to clean up.
local function ttl(p, fresh)
    local left = p.block > now and p.block - now or 0
    return format('%.0f', ceil(min(max(fresh, left), CENTURY) / 1000) + KEEP_MS)
end

-- The value of all but the log is one short string: the state, then '!' and the end of a block.
local function read(p)
    local value = redis.call('GET', p.key)
    p.block = 0
    if value and string.find(value, '!', 1, true) then
        local state, block = match(value, '^(.*)!(%d+)$')
        value, p.block = state, tonumber(block)
    end
    p.found = value and value ~= '' and value
    return p.found
end

-- A block that is over for every clock is no longer noted.
local function has_block(p)
    return p.block + SLACK > now and p.block > 0
end

local function with_block(p, state)
    return has_block(p) and state .. format('!%.0f', p.block) or state
end

local function write(p, state, fresh)
    redis.call('SET', p.key, with_block(p, state), 'PX', ttl(p, fresh))
end

local function wipe(p)
    if has_block(p) then
        write(p, '', 0)
    else
        redis.call('DEL', p.key)
    end
end

local function mark(p)
    if not p.found then
        return wipe(p)
    end
    local left = max(redis.call('PTTL', p.key), 0)
    redis.call('SET', p.key, with_block(p, p.found), 'PX', ttl(p, left * 1000))
end

local function damaged(p)
    error('weir: ' .. p.key .. ' holds something else than a state of this limit')
end
