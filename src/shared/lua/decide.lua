-- One call: ARGV is a verb and, for each key, algorithm, quota, debt, a, b, cost and one number more:
-- how long a check may wait, when the units of a refund were charged (FOREVER: just now; leaky_bucket:
-- when their place ends), until when a block lasts, or with blockfor and banfor how long. `undo` is a
-- refund that adds nothing; for a token bucket its number is when the bucket would have been full after
-- the charge.
-- After all of them may come one number for each key (`beyond`): the units that a bucket of a `synced`
-- limit can owe, other than by its debt (shared/synced/sync.h). After these may come another one for each
-- key: 1 if clients may be told of its limit, 0 if not.
-- Several keys are checked all or nothing: look at all, and only if all allow, charge all.
--
-- Answers {verdict, blocked (1, or 2 by a ban), remaining, granted, retry, reset, delay, stamp, limit}: of
-- the limit that binds; block, ban, unblock and reset answer 1 or 0. Times in us; retry and reset -1:
-- never. The verb `lease` is of one key: lease.lua. If clients may not be told of that limit, but of others,
-- {verdict, blocked, remaining, retry, reset, limit} of the one of these that binds follow.
local parts = {}
local all = verb == 'check' or verb == 'upto' or verb == 'lease' and ARGV[7] ~= '0'
local behind = verb == 'lease' and #ARGV or #KEYS * 7 + 1
for i = 1, #KEYS do
    local at = i * 7 - 5
    local p = {
        key = KEYS[i],
        ops = algorithms[ARGV[at]],
        quota = tonumber(ARGV[at + 1]),
        debt = tonumber(ARGV[at + 2]),
        a = tonumber(ARGV[at + 3]),
        b = tonumber(ARGV[at + 4]),
        cost = tonumber(ARGV[at + 5]),
        wait = tonumber(ARGV[at + 6]),
        beyond = ARGV[behind + i],
        verdict = ALLOW,
        found = false,
        block = 0,
        blocked = false,
        pulled = false,
        was_u = false,
        more_u = false,
        granted = 0,
        remaining = 0,
        retry = 0,
        reset = 0,
        delay = 0,
        stamp = 0,
    }
    p.ops.look(p)
    all = all and p.verdict == ALLOW and not p.blocked
    parts[i] = p
end

local charged
if rare then
    local p = parts[1]
    local ops = p.ops
    if verb == 'sync' then
        return ops.sync(p)
    elseif verb == 'reset' then
        if p.found then
            ops.wipe(p)
        end
        return p.found and 1 or 0
    elseif verb == 'unblock' then
        local was = p.block > 0
        if was then
            p.block = 0
            ops.mark(p)
        end
        return was and 1 or 0
    elseif verb == 'block' or verb == 'blockfor' or verb == 'banfor' then
        -- The end of a ban is odd, that of a block even, as in the tables of the nodes.
        local ban = verb == 'banfor' and 1 or 0
        local till = verb == 'block' and p.wait or min(now + p.wait, FOREVER)
        if till <= now then
            return 0
        end
        till = till - (till + ban) % 2
        till = till > now and till or till + 2
        if ban == 0 or p.block < till then -- a block that ends later is not replaced by a ban
            p.block = till
            ops.mark(p)
        end
        return 1
    elseif verb == 'penalize' then
        charged = ops.charge(p)
        ops.save(p)
    else
        p.wait = p.wait < FOREVER and p.wait or now
        if p.found and ops.refund(p) then
            ops.save(p)
        end
    end
    p.cost, p.wait = 1, 0 -- the answer is that of a peek afterwards
    p.pulled, p.was_u, p.more_u = false, false, false
    ops.look(p)
end

local binding, limit, delay
for i = 1, #parts do
    local p = parts[i]
    -- A call that takes nothing writes nothing, except a state of a far future that it met: its retry
    -- comes true only if that stays pulled down.
    local pull = p.pulled and not all and p.verdict ~= NEVER
    if all then
        p.granted = p.cost
    end
    p.ops.done(p, all, pull)
    if p.verdict == ALLOW then
        p.retry = 0
    elseif p.verdict == NEVER then
        p.retry = FOREVER
    end
    if p.blocked then
        local left = p.block >= FOREVER and FOREVER or p.block - now
        p.remaining, p.delay = 0, 0
        if p.verdict ~= NEVER then
            p.verdict, p.retry = DENY, max(left, p.retry)
        end
        p.reset = max(left, p.reset)
    end
    -- NEVER binds before DENY before ALLOW; then the largest retry, or the smallest remaining.
    if not binding then
        binding, limit, delay = p, 0, p.delay
    else
        local more = p.verdict > binding.verdict
        if p.verdict == binding.verdict then
            more = p.verdict == ALLOW and p.remaining < binding.remaining or p.retry > binding.retry
        end
        if more then
            binding, limit = p, i - 1
        end
        delay = max(delay, p.delay)
    end
end
local answer = {
    binding.verdict,
    binding.blocked and 1 + binding.block % 2 or 0,
    binding.remaining,
    charged or binding.granted,
    binding.retry < FOREVER and binding.retry or -1,
    binding.reset < FOREVER and binding.reset or -1,
    binding.verdict == ALLOW and delay or 0,
    binding.stamp,
    limit,
}
local exposed = behind + #KEYS -- before the numbers that say of which limits clients may be told
if ARGV[exposed + limit + 1] == '0' then
    local told
    for i = 1, #parts do
        local p = parts[i]
        if ARGV[exposed + i] == '1' then
            local more = not told or p.verdict > told.verdict
            if told and p.verdict == told.verdict then
                more = p.verdict == ALLOW and p.remaining < told.remaining or p.retry > told.retry
            end
            if more then
                told, limit = p, i - 1
            end
        end
    end
    answer[10] = told.verdict
    answer[11] = told.blocked and 1 + told.block % 2 or 0
    answer[12] = told.remaining
    answer[13] = told.retry < FOREVER and told.retry or -1
    answer[14] = told.reset < FOREVER and told.reset or -1
    answer[15] = limit
end
if binding.lease then
    binding.lease(answer)
end
return answer
