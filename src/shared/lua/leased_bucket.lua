-- token_bucket with leases. Behind the state of a token bucket, for each mark that is not yet over:
-- ';', the mark (the first in us, the others as the distance from the one before), ',' units that
-- are outstanding under it, ',' of how many leases. All units outstanding are H; the bucket fills
-- up to quota - H and no further, so it leads by at least the time of H. At a mark, what is still
-- outstanding under it counts as spent: the state leads by H before it, and then fills on.
--
-- A lease lives as long as the bucket takes to fill, within bounds, and up to an eighth more: marks
-- are that far apart, so there are at most ten, however many nodes there are. Where the row of
-- marks begins is where the first lease was granted: a state that was lost and made anew does not
-- take the marks of the old one for its own.
local LIFE_LEAST, LIFE_MOST, MARKS = 250000, 2000000, 8

-- All leases together are to hold a quarter of the quota at most. A new one takes half of what is
-- there, so that others find something. A sixteenth of its share, or less, is not worth being
-- halved: who waits gets all of it, and who renews a lease in advance nothing.
local SHARE, CRUMB = 4, 16

local function leased_bucket()
    local function life(p)
        return max(LIFE_LEAST, min(LIFE_MOST, p.span_u))
    end

    -- The later of (u, r) and the time of all outstanding units behind `at`.
    local function at_least(p, u, r, at)
        local hu, hr = times(min(p.outstanding, p.quota), p.a, p.b)
        hu = hu + at
        if hu > u or hu == u and hr > r then
            return hu, hr
        end
        return u, r
    end

    local function read_marks(p, list)
        local at = 0
        for distance, units, leases in string.gmatch(list, ';(%d+),(%d+),(%d+)') do
            at = at + distance
            units = tonumber(units)
            p.marks[#p.marks + 1] = { at = at, units = units, leases = tonumber(leases) }
            p.outstanding = p.outstanding + units
            p.leases = p.leases + leases
        end
        if #p.marks == 0 then
            return error(DAMAGED .. p.key)
        end
    end

    local function drop(p, i)
        local mark = table.remove(p.marks, i)
        p.outstanding = p.outstanding - mark.units
        p.leases = p.leases - mark.leases
    end

    -- No lease lives longer than this: a mark beyond it is from a clock that was set back since. It
    -- joins the one before it, if that is not sooner: marks stay in their order.
    local function pull_marks(p)
        local last = now + life(p) + floor(life(p) / MARKS)
        for i = #p.marks, 1, -1 do
            local mark, before = p.marks[i], p.marks[i - 1]
            if mark.at > last + SLACK then
                p.pulled = true
                if before and before.at >= last then
                    before.units, before.leases = before.units + mark.units, before.leases + mark.leases
                    table.remove(p.marks, i)
                else
                    mark.at = last
                end
            end
        end
    end

    -- What is outstanding becomes less by at least what comes back: the state still leads by the
    -- time of the rest.
    local function settle(p, u, r)
        if lease.ends(p) or lease.held < lease.back + lease.keep then
            return u, r
        end
        for i, mark in ipairs(p.marks) do
            if mark.at == lease.mark and mark.units >= lease.held and mark.leases > 0 then
                lease.kept, lease.changed = true, true
                mark.units, mark.leases = mark.units - lease.held, mark.leases - 1
                p.outstanding, p.leases = p.outstanding - lease.held, p.leases - 1
                if mark.units == 0 then
                    drop(p, i)
                end
                local bu, br = times(lease.back, p.a, p.b)
                u, r = carry(u - bu, r - br)
                return u < 0 and 0 or u, u < 0 and 0 or r
            end
        end
        return u, r
    end

    local function leased_lead(p)
        local value = read(p)
        p.marks, p.outstanding, p.leases = {}, 0, 0
        local u, r = 0, 0
        if value then
            local state, list = match(value, '^([^;]+)(;.+)$')
            u, r = lead_of(p, state or value)
            if list then
                read_marks(p, list)
            end
        end
        while p.marks[1] and p.marks[1].at <= now do
            u, r = at_least(p, u, r, p.marks[1].at - now)
            drop(p, 1)
        end
        pull_marks(p)
        if u < 0 then
            u, r = 0, 0
        end
        u, r = at_least(p, u, r, 0)
        if lease and lease.mark > 0 then
            local less_u, less_r = settle(p, u, r)
            if p.was_u then
                p.was_u, p.was_r = carry(p.was_u - u + less_u, p.was_r - r + less_r)
            end
            return less_u, less_r
        end
        return u, r
    end

    local function leased_save(p)
        local state, fresh = state_of(p)
        local text, at = { state }, 0
        for _, mark in ipairs(p.marks) do
            text[#text + 1] = format(';%.0f,%.0f,%.0f', mark.at - at, mark.units, mark.leases)
            at = mark.at
        end
        if at > 0 then
            fresh = max(fresh, (at_least(p, 0, 0, at - now)) + 1)
        end
        write(p, table.concat(text), fresh)
    end

    local ops = bucket(token_limit, token_delay, leased_lead, leased_save)

    -- The mark of a lease that begins now: in the row of those that are there.
    local function mark_from_now(p)
        local mark = now + life(p)
        local last = p.marks[#p.marks]
        if not last then
            return mark
        end
        local apart = floor(life(p) / MARKS)
        return last.at + ceil((mark - last.at) / apart) * apart
    end

    local function hold(p, units)
        local at, i = mark_from_now(p), 1
        while p.marks[i] and p.marks[i].at < at do
            i = i + 1
        end
        if not p.marks[i] or p.marks[i].at > at then
            table.insert(p.marks, i, { at = at, units = 0, leases = 0 })
        end
        local mark = p.marks[i]
        mark.units, mark.leases = mark.units + units, mark.leases + 1
        p.outstanding, p.leases = p.outstanding + units, p.leases + 1
        lease.changed = true
        return at
    end

    local function most(p, cost)
        local cu, cr = times(cost, p.a, p.b)
        cu, cr = carry(p.u + cu, p.r + cr)
        local room = quotient(p, carry(p.span_u - cu, p.span_r - cr))
        local share = floor(p.quota / (SHARE * (p.leases + 1)))
        local half = floor(room / 2)
        if half <= floor(share / CRUMB) then
            half = cost > 0 and min(room, floor(share / CRUMB)) or 0
        end
        return min(lease.want, share, (lease.kept and lease.keep or 0) + half)
    end

    if rare then
        -- Full again, but for what is outstanding: whoever reads it sees to that.
        function ops.wipe(p)
            if p.outstanding > 0 then
                p.u, p.r, p.more_u = 0, 0, false
                leased_save(p)
            else
                wipe(p)
            end
        end
    end
    return lease and leasing(ops, most, hold) or ops
end

-- Made only for who asks for it: the script for several limits has it too.
for i = 1, #KEYS do
    if ARGV[i * 7 - 5] == '6' then
        algorithms['6'] = algorithms['6'] or leased_bucket()
    end
end
