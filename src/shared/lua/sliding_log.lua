-- sliding_log: when each of the last `quota` units was admitted (src/algo/sliding_log.c); a us is the
-- period. The value is a ring as bytes: a head (units ever admitted: 7 bytes, places: 4, end of a
-- block: 7), then 7 bytes for each place: time + 1, or 0 for none. Unit u is in place u mod places.
-- It takes a quarter (100 units) to a sixteenth (1,000) of the memory of a sorted set, and a decision
-- writes 14 bytes of it.
--
-- Places that the string does not reach are empty: it grows with the units. Times never decrease: a
-- call with an older time is noted under the newest. Live units are therefore the newest ones.
algorithms['5'] = (function()
    local HEAD, WIDE = 18, 7
    local WHOLE = 1000 -- rings up to this many places are read at once, others place by place
    local pack, unpack = struct.pack, struct.unpack

    local function place(p, i)
        local at = HEAD + i * WIDE
        if p.whole then
            return #p.whole >= at + WIDE and floor(unpack('>I7', p.whole, at + 1)) or 0
        end
        local bytes = call('GETRANGE', p.key, at, at + WIDE - 1)
        return #bytes == WIDE and floor(unpack('>I7', bytes)) or 0
    end

    -- When the unit `back` before the end was admitted; nil if there is none.
    local function admitted(p, back)
        if back <= p.added then
            return p.time
        end
        back = back - p.added
        if back > p.word or back > p.places then
            return nil
        end
        local time = place(p, (p.word - back) % p.places)
        return time > 0 and time - 1 or nil
    end

    local function live(p, back)
        local time = admitted(p, back)
        return time and p.time - time < p.a
    end

    local function count_live(p)
        local low, high = 0, min(p.places - 1, p.word + p.added)
        while low < high do
            local middle = low + floor((high - low + 1) / 2)
            if live(p, middle) then
                low = middle
            else
                high = middle - 1
            end
        end
        return low
    end

    local function left(p)
        if live(p, p.quota) then -- full, as those are who ask in vain: no need to search
            return 0
        end
        return max(p.quota - count_live(p), 0)
    end

    local function head(p, word)
        return pack('>I7I4I7', word, p.places, p.block)
    end

    -- Writes the same time (nil: none) for n units from `unit` on, around the end of the ring.
    local function fill(p, unit, n, time)
        local bytes = pack('>I7', time and time + 1 or 0)
        while n > 0 do
            local first = unit % p.places
            local run = min(n, p.places - first)
            call('SETRANGE', p.key, HEAD + first * WIDE, string.rep(bytes, run))
            unit, n = unit + run, n - run
        end
    end

    -- A ring for a larger quota: the units in order, from place 0 on.
    local function grow(p)
        local units = {}
        local n = min(p.word, p.places)
        for back = n, 1, -1 do
            units[#units + 1] = pack('>I7', place(p, (p.word - back) % p.places))
        end
        p.places, p.word, p.whole = p.quota + 1, n, nil
        call('SET', p.key, head(p, n) .. table.concat(units), 'PX', ttl(p, p.a))
    end

    local function forget(p)
        if p.block > 0 and p.block + SLACK > now then
            call('SET', p.key, head(p, 0), 'PX', ttl(p, 0))
        else
            call('DEL', p.key)
        end
    end

    local ops = { wipe = forget }

    function ops.look(p)
        p.whole = p.quota < WHOLE and (call('GET', p.key) or '')
        local first = p.whole or call('GETRANGE', p.key, 0, HEAD - 1)
        p.word, p.places, p.added, p.time = 0, p.quota + 1, 0, now
        if #first >= HEAD then
            local word, places, block = unpack('>I7I4I7', first)
            p.word, p.places, p.block = floor(word), floor(places), floor(block)
            p.blocked = p.block > now
            p.found = p.word > 0
            local newest = admitted(p, 1)
            if newest and newest > now + SLACK then
                -- From a far future: forgotten, since its times cannot all be brought down.
                p.pulled, p.word, p.places = true, 0, p.quota + 1
            elseif newest and newest > now then
                p.time = newest
            end
        elseif #first > 0 then
            return error(DAMAGED .. p.key)
        end
        if verb == 'upto' then
            p.cost = p.blocked and 1 or max(1, min(p.cost, left(p)))
        end
        -- Taking n leaves the newest quota - n of the present units: the one before must be gone.
        p.verdict = p.cost > p.quota and NEVER
            or p.cost > 0 and live(p, p.quota - p.cost + 1) and DENY
            or ALLOW
    end

    function ops.save(p)
        if p.added == 0 then
            return p.pulled and forget(p)
        end
        if p.word == 0 then
            local bytes = string.rep(pack('>I7', p.time + 1), p.added)
            call('SET', p.key, head(p, p.added) .. bytes, 'PX', ttl(p, p.time - now + p.a))
            return
        end
        if p.places <= p.quota then
            grow(p)
        end
        fill(p, p.word, p.added, p.time)
        call('SETRANGE', p.key, 0, pack('>I7', p.word + p.added))
        call('PEXPIRE', p.key, ttl(p, p.time - now + p.a))
    end

    function ops.done(p, take, pull)
        if take then
            p.added = p.cost
        end
        if take or pull then
            ops.save(p)
        end
        local newest = live(p, 1) and admitted(p, 1)
        p.remaining = left(p)
        p.reset = newest and newest - now + p.a or 0
        p.stamp = p.time
        if p.verdict == DENY then
            p.retry = admitted(p, p.quota - p.cost + 1) - now + p.a
        end
    end

    if rare then
        function ops.charge(p)
            p.added = min(p.cost, left(p))
            return p.added
        end

        -- The exact inverse where the newest units are those; else the oldest go, by taking the
        -- time of the dead unit behind them: what remains is newer than the truth. Writes itself.
        function ops.refund(p)
            if p.pulled or p.time - p.wait >= p.a then
                return false
            end
            local alive = count_live(p)
            local units = min(p.cost, alive)
            local newest = 0
            while newest < units and admitted(p, newest + 1) == p.wait do
                newest = newest + 1
            end
            if newest == units then
                fill(p, p.word - units, units, nil)
                call('SETRANGE', p.key, 0, pack('>I7', p.word - units))
            else
                local behind = alive + 1 < p.places and admitted(p, alive + 1)
                local oldest = behind and alive or min(p.places, p.word)
                fill(p, p.word - oldest, oldest - alive + units, behind or nil)
            end
            return false
        end

        function ops.mark(p)
            if not p.found then
                return forget(p)
            end
            call('SETRANGE', p.key, HEAD - WIDE, pack('>I7', p.block))
            call('PEXPIRE', p.key, ttl(p, max(call('PTTL', p.key), 0) * 1000))
        end
    end
    return ops
end)()
