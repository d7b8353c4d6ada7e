-- fixed_window: `quota` in each window of a us, the first of which begins at b
-- (src/algo/fixed_window.c). The state is the window's index and what was taken in it: "index:count".
algorithms['3'] = (function()
    local function index_of(p, time)
        return floor((time - p.b) / p.a)
    end

    local function start_of(p, index)
        return index * p.a + p.b
    end

    return {
        open = function(p)
            local value = read(p)
            p.index, p.count, p.pulled = index_of(p, now), 0, false
            if not value then
                return
            end
            local index, count = match(value, '^(-?%d+):(%d+)$')
            index, count = tonumber(index), tonumber(count)
            if not index then
                return damaged(p)
            end
            if index > p.index and start_of(p, index) > now + SLACK then
                p.count, p.pulled = count, true
            elseif index >= p.index then
                p.index, p.count = index, count
            end
        end,
        room = function(p)
            return max(p.quota - p.count, 0)
        end,
        fits = function(p)
            return p.count + p.cost <= p.quota
        end,
        take = function(p, n)
            p.count = p.count + n
        end,
        -- An empty window ahead of now still keeps laggards out of the one before it.
        save = function(p)
            local fresh = start_of(p, p.index + (p.count > 0 and 1 or 0)) - now
            write(p, format('%.0f:%.0f', p.index, p.count), fresh)
        end,
        charge = function(p)
            local n = min(p.cost, max(p.quota + p.debt - p.count, 0))
            p.count = p.count + n
            return n
        end,
        refund = function(p)
            if index_of(p, p.wait) ~= p.index then
                return false
            end
            p.count = max(p.count - p.cost, 0)
            return true
        end,
        tell = function(p)
            local left = start_of(p, p.index + 1) - now
            p.remaining, p.delay = max(p.quota - p.count, 0), 0
            p.reset = p.count == 0 and 0 or left
            p.retry = left
        end,
        stamp = function(p)
            return max(now, start_of(p, p.index))
        end,
        wipe = wipe,
        mark = mark,
    }
end)()
