-- What all algorithms share. Numbers are doubles: whole and below 2^53, or the C side would not have
-- let the limit pass. They become text by %.0f alone: tostring() and cjson keep 14 digits.
--
-- In Lua 5.4 (Dragonfly) whole numbers have a type of their own, and a reply or a command must have no
-- others. So quotients go through floor(), and so do the numbers of struct.unpack(). Such numbers wrap
-- around at 2^63: where a product may be larger, which then need not be exact, one factor is `+ 0.0`.
--
-- A part `p` is one limit and one key: what the question says (quota, debt, a, b, cost, wait) and
-- what is made of the key's value as of now. Each algorithm is a table of operations:
--
--   look(p)          reads the key and sets p.verdict of p.cost, which `upto` cuts to what there is;
--                    p.found (a state is there), p.block (end of its block, or 0), p.pulled (the state
--                    is from a far future, and taken for what it can be at most)
--   done(p,take,pull)  takes p.cost and stores that, or stores what was pulled, or nothing; then sets
--                    remaining, retry, reset, delay, and stamp: the time under which units count
--   and for rare verbs, after look():
--   save(p)          stores the state
--   charge(p)        takes what fits of p.cost within quota and debt; says how much
--   refund(p)        gives p.cost back, charged at p.wait (leaky_bucket: the end of its place); true if
--                    that changed the state
--   wipe(p)          stores no state, keeps the block
--   mark(p)          stores p.block, keeps the state
--
-- A function costs when it is made, and that is in every call. So there are few, those of rare verbs
-- are made for these alone, and some things are spelled out that would read better by name.
local SLACK = 1000000 -- us that clocks may differ
local FOREVER = 9007199254740992 -- 2^53
local CENTURY = 3155760000000000 -- us: the time to live of what has no end
local ALLOW, DENY, NEVER = 1, 2, 3
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
local format, match = string.format, string.match
local call = redis.call
local algorithms = {}
local verb = ARGV[1] == 'plain' and 'check' or ARGV[1]
local rare = verb ~= 'check' and verb ~= 'peek' and verb ~= 'upto' and verb ~= 'lease'
local DAMAGED = 'weir: something else than a state of this limit is in '

-- Milliseconds to keep a state that is as good as new in `fresh` us: only ever to clean up.
local function ttl(p, fresh)
    local left = p.block > now and p.block - now or 0
    fresh = fresh > left and fresh or left
    return format('%.0f', ceil((fresh < CENTURY and fresh or CENTURY) / 1000) + KEEP_MS)
end

-- The value of all but the log is one short string: the state, then '!' and the end of a block.
local function read(p)
    local value = call('GET', p.key)
    if value and string.find(value, '!', 1, true) then
        local block
        value, block = match(value, '^(.*)!(%d+)$')
        if not value then
            return error(DAMAGED .. p.key)
        end
        p.block = tonumber(block)
        p.blocked = p.block > now
    end
    p.found = value and value ~= '' and value
    return p.found
end

-- A block that is over for every clock is no longer noted.
local function write(p, state, fresh)
    if p.block > 0 and p.block + SLACK > now then
        state = state .. format('!%.0f', p.block)
    end
    call('SET', p.key, state, 'PX', ttl(p, fresh))
end

local wipe, mark
if rare then
    function wipe(p)
        if p.block > 0 and p.block + SLACK > now then
            write(p, '', 0)
        else
            call('DEL', p.key)
        end
    end

    function mark(p)
        if p.found then
            write(p, p.found, max(call('PTTL', p.key), 0) * 1000)
        else
            wipe(p)
        end
    end
end
