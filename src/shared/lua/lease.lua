-- The verb `lease`, of one key: an earlier lease is settled, a question is decided (of cost 0: none
-- was asked), and a new lease is granted, at once. Behind the numbers of the key, ARGV has
--
--   want     units that the node would like to hold afterwards
--   mark     the lease that it has, by its end in us; 0: none, and the next three are 0
--   held     units of it that were granted and not yet settled: all of them are settled now:
--   back     ... given back unspent, ...
--   keep     ... kept, to be spent under the new lease, ...
--            ... or spent, the rest
--
-- The answer has four numbers more: units granted; the new mark, 0 if the node now holds nothing;
-- us until then; 1 if what it kept is still its own. A mark that is over or unknown settles
-- nothing: what was held under it counts as spent.
local lease
if verb == 'lease' then
    lease = {
        want = tonumber(ARGV[9]),
        mark = tonumber(ARGV[10]),
        held = tonumber(ARGV[11]),
        back = tonumber(ARGV[12]),
        keep = tonumber(ARGV[13]),
        granted = 0,
        fresh = 0, -- the new mark
        kept = false,
        changed = false,
    }

    -- A blocked key's lease is not renewed: nothing is settled, so what the node holds counts as out
    -- until its old mark, and the node, which hears that it is not its own any more, drops it.
    function lease.ends(p)
        return p.blocked and lease.keep > 0
    end
end

-- Takes the units of a new lease along with those of the question. most(p, room): how many may be
-- held by one node if `room` are there; hold(p, units): where they are noted, returns their mark.
local function leasing(ops, most, hold)
    local look, done = ops.look, ops.done

    function ops.look(p)
        look(p)
        function p.lease(answer)
            answer[10] = lease.granted
            answer[11] = lease.fresh
            answer[12] = lease.fresh > 0 and lease.fresh - now or 0
            answer[13] = lease.kept and 1 or 0
        end
    end

    function ops.done(p, take, pull)
        local cost = take and p.cost or 0
        local keep = lease.kept and lease.keep or 0
        if not p.blocked and (take or p.cost == 0 and p.verdict == ALLOW) then
            lease.granted = max(0, most(p, cost) - keep)
        end
        if lease.granted + keep > 0 then
            lease.fresh = hold(p, lease.granted + keep)
        end
        local asked = p.cost
        p.cost = cost + lease.granted
        done(p, p.cost > 0, pull or lease.changed)
        p.cost = asked
    end
    return ops
end
