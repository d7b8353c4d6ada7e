-- leaky_bucket: a queue of quota - 1 behind the one being served (src/algo/leaky_bucket.c). With a
-- wait, the caller's patience takes the place of the queue's length.
algorithms['2'] = bucket_ops(
    function(p)
        local u, r = times(p.cost, p.a, p.b)
        if p.wait == 0 then
            return minus(p.span_u, p.span_r, u, r)
        end
        return patience(p.wait, minus(p.reach_u, p.reach_r, u, r))
    end,
    function(p) -- a turn begins where the queue ended before it
        local u, r = times(p.granted, p.a, p.b)
        return round_up(minus(p.u, p.r, u, r))
    end)
