-- fixed_window: `quota` in each window of a us, the first of which begins at b
-- (src/algo/fixed_window.c). The state is the window's index and what was taken in it: "index:count".
algorithms['3'] = (function()
    local ops = { wipe = wipe, mark = mark }

    function ops.look(p)
        local value = read(p)
        local index, count = floor((now - p.b) / p.a), 0
        if value then
            local i, n = match(value, '^(-?%d+):(%d+)$')
            i, n = tonumber(i), tonumber(n)
            if not i then
                return error(DAMAGED .. p.key)
            end
            if i >= index then
                count = n
                p.pulled = i > index and i * p.a + p.b > now + SLACK
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
        local fresh = p.index * p.a + p.b - now + (p.count > 0 and p.a or 0)
        write(p, format('%.0f:%.0f', p.index, p.count), fresh)
    end

    function ops.done(p, take, pull)
        if take then
            p.count = p.count + p.cost
        end
        if take or pull then
            ops.save(p)
        end
        local start = p.index * p.a + p.b
        p.remaining = p.count < p.quota and p.quota - p.count or 0
        p.retry = start - now + p.a
        p.reset = p.count > 0 and p.retry or 0
        p.stamp = start > now and start or now
    end

    if rare then
        function ops.charge(p)
            local n = min(p.cost, max(p.quota + p.debt - p.count, 0))
            p.count = p.count + n
            return n
        end

        function ops.refund(p)
            if floor((p.wait - p.b) / p.a) ~= p.index then
                return false -- into a window that is over
            end
            p.count = max(p.count - p.cost, 0)
            return true
        end
    end
    return ops
end)()
