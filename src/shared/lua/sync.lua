-- `sync`: a node tells what it has admitted since it told last, and hears the total (shared/synced/sync.h). The
-- units are added whatever the quota and the debt, and the state is that of `check`. Made for this verb
-- alone: in the calls of the others it is nothing but text.
--
-- cost is the delta, negative if units come back. Of buckets, `wait` says how far the delta would lead
-- by itself, negative if it has drained since, and `beyond` is -1 if the node has seen that the store's
-- clock was set back. Of windows, `wait` says which one it was admitted in, -1
-- if the node did not know, and `beyond` is what it admitted in the one before.
--
-- Several keys are exchanged one after the other, when all have been read.
-- Answers for each {now, x, y, z, end of a block or 0, dropped}: x, y how far a bucket leads; or x the window, y
-- its count, z that of the one before it; dropped: units of windows that nobody counts any more.
if verb == 'sync' then
    local MOST = 4503599627370495 -- 2^52 - 1

    -- Nothing is cut off, but for what a double cannot hold.
    local function bounded(n)
        return n < 0 and 0 or n < MOST and n or MOST
    end

    -- A bucket that is full knows for a while since when. Between max(state, now) + delta, which would
    -- take the time before the exchange from it, and state + delta, which forgets when the units were
    -- taken, is what the units lead by themselves.
    local function bucket_sync(p)
        local u, r = p.u, p.r
        if not p.found then
            u = -KEEP_MS * 1000 -- or it would be here
        elseif u == 0 and r == 0 then
            u, r = lead_of(p, p.found)
        end
        local du, dr = times(p.cost, p.a, p.b)
        u, r = carry(u + du, r + dr)
        if p.cost > 0 and p.wait > u then
            u, r = p.wait, 0
        end
        p.u, p.r = min(u, FOREVER - 1 - now), r
        if p.more_u then -- what it was moves by the delta, however far this node's bucket is full
            local more_u, more_r = carry(p.was_u + du - p.u, p.was_r + dr - p.r)
            p.more_u, p.more_r = more_u >= 0 and more_u, more_r
        end
        if p.cost > 0 or p.found and (p.cost < 0 or p.pulled) then
            save(p)
        end
        if u < 0 then
            u, r = 0, 0
        end
        return { now, u, r, 0, p.block, 0 }
    end

    -- What belongs to a window that has not begun here counts in the one that has: it was admitted
    -- before now.
    local function window_sync(p, current, previous)
        local older, dropped = p.beyond, 0
        local function add(n, index)
            if index < 0 or index >= p.index then
                p[current] = bounded(p[current] + n)
            elseif previous and index + 1 == p.index then
                p[previous] = bounded(p[previous] + n)
            else
                dropped = dropped + n
            end
        end
        add(p.cost, p.wait)
        add(older, p.wait < 0 and p.wait or p.wait - 1)
        if p.cost ~= 0 or older ~= 0 or p.pulled then
            p.ops.save(p)
        end
        return { now, p.index, p[current], previous and p[previous] or 0, p.block, dropped }
    end

    if algorithms['1'] then
        algorithms['1'].sync = bucket_sync
    end
    if algorithms['3'] then
        algorithms['3'].sync = function(p)
            return window_sync(p, 'count')
        end
    end
    if algorithms['4'] then
        algorithms['4'].sync = function(p)
            return window_sync(p, 'current', 'previous')
        end
    end
end
