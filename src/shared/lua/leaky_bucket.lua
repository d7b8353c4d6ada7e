-- leaky_bucket: a queue of quota - 1 behind the one being served (src/algo/leaky_bucket.c). With a
-- wait, the caller's patience takes the place of the queue's length.
algorithms['2'] = bucket(
    function(p, cu, cr)
        local u, r = carry(p.reach_u - cu, p.reach_r - cr)
        if p.wait <= u then
            return p.wait, 0
        end
        return u, r
    end,
    function(p) -- a turn begins where the queue ended before it
        local u, r = times(p.granted, p.a, p.b)
        u, r = carry(p.u - u, p.r - r)
        return r == 0 and u or u + 1
    end,
    lead, save, true)
