-- fixed_window: `quota` in each window of a us, the first of which begins at b (src/algo/window.h).
-- The state is the window's index and what was taken in it: "index:count". If a is MONTH, windows are
-- calendar months, whose indexes count from March of the year 0 (src/base/calendar.h). The store's
-- own time decides which month it is.
algorithms['3'] = (function()
    local MONTH = 2629746000000 -- WEIR_MONTH
    local DAY = 86400000000
    local ops = { wipe = wipe, mark = mark }

    -- When the window of this index begins.
    function ops.start(p, index)
        if p.a ~= MONTH then
            return index * p.a + p.b
        end
        local years = floor(index / 12)
        local days = years * 365 + floor(years / 4) - floor(years / 100) + floor(years / 400)
        return (days + floor((153 * (index % 12) + 2) / 5) - 719468) * DAY + p.b
    end

    local start = ops.start

    -- The window at a time.
    local function index_at(p, time)
        if p.a ~= MONTH then
            return floor((time - p.b) / p.a)
        end
        local next = floor((floor((time - p.b) / DAY) + 719468) * 4800 / 146097) -- or one before it
        while start(p, next) <= time do
            next = next + 1
        end
        return next - 1
    end

    function ops.look(p)
        local value = read(p)
        local index, count = index_at(p, now), 0
        if value then
            local i, n = match(value, '^(-?%d+):(%d+)$')
            i, n = tonumber(i), tonumber(n)
            if not i then
                return error(DAMAGED .. p.key)
            end
            if i >= index then
                count = n
                p.pulled = i > index and start(p, i) > now + SLACK
                index = p.pulled and index or i
            end
        end
        p.index, p.count = index, count
        if verb == 'upto' then
            p.cost = p.blocked and 1 or max(1, min(p.cost, p.quota - count))
        end
        p.verdict = p.cost > p.quota and NEVER or count + p.cost <= p.quota and ALLOW or DENY
    end

    -- An empty window ahead of now still keeps laggards out of the one before it.
    function ops.save(p)
        local fresh = start(p, p.count > 0 and p.index + 1 or p.index) - now
        write(p, format('%.0f:%.0f', p.index, p.count), fresh)
    end

    function ops.done(p, take, pull)
        if take then
            p.count = p.count + p.cost
        end
        if take or pull then
            ops.save(p)
        end
        p.remaining = p.count < p.quota and p.quota - p.count or 0
        p.retry = start(p, p.index + 1) - now
        p.reset = p.count > 0 and p.retry or 0
        p.stamp = max(start(p, p.index), now)
    end

    if rare then
        function ops.charge(p)
            local n = min(p.cost, max(p.quota + p.debt - p.count, 0))
            p.count = p.count + n
            return n
        end

        function ops.refund(p)
            if index_at(p, p.wait) ~= p.index then
                return false -- into a window that is over
            end
            p.count = max(p.count - p.cost, 0)
            return true
        end
    end
    return ops
end)()
