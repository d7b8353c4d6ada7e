-- One call: ARGV is a verb and, for each key, algorithm, quota, debt, a, b, cost and one number more:
-- how long a check may wait, when the units of a refund were charged, until when a block lasts.
-- Several keys are checked all or nothing: read all, and only if all allow, charge all.
--
-- Answers {verdict, flags, remaining, granted, retry, reset, delay, stamp, limit}: of the limit that
-- binds; block, unblock and reset answer 1 or 0. Times in us; retry -1: never.
local verb = ARGV[1]
local parts = {}
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
        granted = 0,
        retry = 0,
    }
    p.ops.open(p)
    p.blocked = p.block > now
    parts[i] = p
end
local first = parts[1]

if verb == 'reset' then
    if first.found then
        first.ops.wipe(first)
    end
    return first.found and 1 or 0
elseif verb == 'unblock' then
    local was = first.block > 0
    if was then
        first.block = 0
        first.ops.mark(first)
    end
    return was and 1 or 0
elseif verb == 'block' then
    if first.wait <= now then
        return 0
    end
    first.block = first.wait
    first.ops.mark(first)
    return 1
elseif verb == 'refund' or verb == 'penalise' then
    local ops = first.ops
    if verb == 'penalise' then
        first.charged = ops.charge(first)
        ops.save(first)
    elseif first.found and ops.refund(first) then
        ops.save(first)
    end
    ops.open(first)
    first.cost, first.wait = 1, 0
end

local function judge(p)
    if verb == 'upto' then
        p.cost = p.blocked and 1 or max(1, min(p.cost, p.ops.room(p)))
    end
    if p.cost > p.quota then
        return NEVER
    end
    return p.ops.fits(p) and ALLOW or DENY
end

local takes = verb == 'check' or verb == 'upto'
local all = takes
for i = 1, #parts do
    local p = parts[i]
    p.verdict = judge(p)
    all = all and p.verdict == ALLOW and not p.blocked
end

-- Denied calls write nothing, but for a state of a far future that they met.
local function store(p)
    if all then
        p.ops.take(p, p.cost)
        p.granted = p.cost
        p.ops.save(p)
    elseif takes and p.pulled and not p.blocked and p.verdict ~= NEVER then
        if p.verdict == DENY or p.ops == algorithms['5'] then
            p.ops.save(p)
        end
    end
end

local function tell(p)
    p.ops.tell(p)
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
end

local function binds_more(p, q)
    if p.verdict ~= q.verdict then
        return p.verdict > q.verdict
    elseif p.verdict == ALLOW then
        return p.remaining < q.remaining
    end
    return p.retry > q.retry
end

local binding, limit, delay = first, 0, 0
for i = 1, #parts do
    local p = parts[i]
    store(p)
    tell(p)
    delay = max(delay, p.delay)
    if i > 1 and binds_more(p, binding) then
        binding, limit = p, i - 1
    end
end
if binding.verdict ~= ALLOW then
    delay = 0
end
return {
    binding.verdict,
    binding.blocked and 1 or 0,
    binding.remaining,
    binding.charged or binding.granted,
    binding.retry >= FOREVER and -1 or binding.retry,
    binding.reset >= FOREVER and -1 or binding.reset,
    delay,
    binding.ops.stamp(binding),
    limit,
}
