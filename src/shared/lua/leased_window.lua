-- fixed_window with leases: a lease counts in its window when it is granted, and ends with it. So
-- the state is that of fixed_window; a mark is the window's end. Each grant is at most an eighth of
-- what is left: the last leases of a window are small, however many nodes there are.
local SHARE = 8

if lease then
    algorithms['3'] = (function()
        local ops = algorithms['3']
        local look = ops.look
        local cost

        local function ending(p)
            return ops.start(p, p.index + 1)
        end

        function ops.look(p)
            look(p)
            if lease.mark > 0 and lease.mark == ending(p) and not lease.ends(p) then
                lease.kept, lease.changed = true, lease.back > 0
                p.count = max(p.count - lease.back, 0)
                if p.verdict == DENY and p.count + p.cost <= p.quota then
                    p.verdict = ALLOW
                end
            end
        end

        local function most(p, taken)
            local keep = lease.kept and lease.keep or 0
            return min(lease.want, keep + max(0, floor((p.quota - p.count - taken) / SHARE)))
        end

        return leasing(ops, most, ending)
    end)()
end
