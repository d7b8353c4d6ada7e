# Bugs that the simulator must find. Each row: a name, the mode, and what is replaced by what in src/shared.

weir_plant_fleet(a_lease_lives_from_its_reply LEASED
    [[        take_lease(e, call, reply, &a);]]
    [[        ((struct lease_call *)call)->made_ns = now_ns;
        take_lease(e, call, reply, &a);]])

weir_plant_fleet(no_time_is_left_for_clocks_that_drift LEASED
    [[life_ns - life_ns / DRIFT_PART]] [[life_ns]])

weir_plant_fleet(a_lost_call_leaves_its_mark_to_the_next LEASED
    [[        e->left = call->keep;
        e->mark = 0;
        e->held = 0;]]
    [[        e->left = call->keep;]])

weir_plant_fleet(what_a_lost_call_gave_back_is_spent LEASED
    [[        e->renew_below = e->left / 2;
        e->renew_ns = UINT64_MAX;
        land(keys, s, e, now_ns);]]
    [[        e->left += call->back;
        e->renew_below = e->left / 2;
        e->renew_ns = UINT64_MAX;
        land(keys, s, e, now_ns);]])

weir_plant_fleet(units_are_kept_that_the_store_does_not_know LEASED
    [[    if (!kept && (call->lease != 0 || granted != 0)) {
        e->left = 0;
    }
]] "")

weir_plant_fleet(leases_are_spent_after_their_end LEASED
    [[    e->expires_ns = call->made_ns + life_ns - life_ns / DRIFT_PART;]]
    [[    e->expires_ns = call->made_ns + 4 * life_ns;]])

weir_plant_fleet(who_has_waited_is_served_of_units_that_are_not_there LEASED
    [[    bool here = e != NULL && lease_to_spend(e, now_ns) >= of->cost;]]
    [[    bool here = e != NULL && lease_to_spend(e, now_ns) >= of->cost;
    if (how == LEASE_AGAIN && !here && lease_to_spend(e, now_ns) > 0) {
        e->left = of->cost;
        here = true;
    }]])

weir_plant_fleet(what_serves_one_who_waited_serves_all LEASED
    [[    bool helps = f->question == NULL;
    struct list waiting;]]
    [[    bool helps = false;
    struct list waiting;]]
    [[        if (!replied || ask_again(w, q, helps, now_ns)) {]]
    [[        if (replied && helps) {
            *q->answer = (struct weir_answer){.verdict = WEIR_ALLOW, .granted = q->of->cost};
            q->state = LEASE_DECIDED;
        }
        if (!replied || helps || ask_again(w, q, helps, now_ns)) {]])

weir_plant_fleet(who_waits_has_no_deadline LEASED
    [[    timer_set(&w->timers, &q->timer, q->deadline_ns, now_ns);]]
    [[    timer_set(&w->timers, &q->timer, UINT64_MAX, now_ns);]])

weir_plant_fleet(the_bucket_refills_what_is_outstanding LEASED
    [[        local h = held < quota and held or quota
        x = h * b
        local h_r = x % PARTS
        local h_u = h * a + floor(x / PARTS)
]] [[        local h_r, h_u = 0, 0
]])

weir_plant_fleet(an_expired_lease_counts_as_unused LEASED
    [[        held, leases, first = held - marks[first + 1], ]]
    [[        u = u - marks[first + 1] * a
        held, leases, first = held - marks[first + 1], ]])

weir_plant_fleet(a_lease_that_is_over_can_be_returned LEASED
    [[        keep = kept and keep or 0
        -- The whole units]]
    [[        u = kept and u or u > back * a and u - back * a or 0
        keep = kept and keep or 0
        -- The whole units]])

weir_plant_fleet(what_is_outstanding_never_expires LEASED
    [[    while good and first <= n and marks[first] <= now do]]
    [[    while good and first <= n and marks[first] <= now - 3155760000000000 do]])

# Too careful is wrong, too.
weir_plant_fleet(a_lease_that_is_renewed_counts_as_spent LEASED
    [[                    u, r = u - back * a - floor(x / PARTS), r - back_r]]
    [[                    u = u + keep * a]])

weir_plant_fleet(a_reset_forgets_what_is_outstanding LEASED
    [[            if p.outstanding > 0 then
                p.u]] [[            if p.outstanding < 0 then
                p.u]])

weir_plant_fleet(a_lease_outlives_its_window LEASED
    [[if lease and ARGV[10] + 0 == ends then]] [[if lease and ARGV[10] + 0 > 0 then]])

weir_plant_fleet(a_lease_takes_what_is_not_there LEASED
    [[math.floor((quota - count - units) / 8)]] [[math.floor((quota - units) / 8)]])

weir_plant_fleet(a_delta_is_lost_with_its_exchange SYNCED
    [[    k->again = !sync_delta_is_empty(d);]] [[    k->again = false;]])

weir_plant_fleet(what_is_admitted_meanwhile_joins_a_lost_delta_and_is_forgotten SYNCED
    [[    if (!k->again) {
        sync_view_take]] [[    if (!k->again || true) {
        sync_view_take]])

weir_plant_fleet(a_delta_is_cut_to_the_quota SYNCED
    [[        local du, dr = times(p.cost, p.a, p.b)]]
    [[        p.cost = min(p.cost, max(quotient(p, carry(p.span_u - p.u, p.span_r - p.r)), 0))
        local du, dr = times(p.cost, p.a, p.b)]])

weir_plant_fleet(a_count_is_cut_to_the_quota SYNCED
    [[        return n < 0 and 0 or n < MOST and n or MOST]] [[        return n < 0 and 0 or min(n, 3)]])

# Which is ahead of the store's by up to two seconds.
weir_plant_fleet(windows_go_by_the_nodes_clock SYNCED
    [[    int64_t window = window_at(v, p, sync_latest_us(v, now_ns));
    if (window > v->window) {]]
    [[    int64_t window = window_at(v, p, sync_latest_us(v, now_ns) + now_ns % 2000000000 / 1000);
    if (window > v->window) {]])

weir_plant_fleet(idle_keys_are_forgotten_with_their_debt SYNCED
    [[    uint64_t new_ns = add_sat(now_ns, reset_ns(k, now_ns));]]
    [[    uint64_t new_ns = now_ns;]])

weir_plant_fleet(a_node_without_exchanges_goes_on SYNCED
    [[    if ((now_ns >= k->degraded_ns || is_silent(keys, k, now_ns)) && cost <= p->quota) {]]
    [[    if (is_silent(keys, k, now_ns) && cost <= p->quota && k->degraded_ns == 0) {]])

weir_plant_fleet(what_was_heard_counts_for_less SYNCED
    [[    v->full_at = ticks_of(now_ns) + lead + v->next.units * step_of(p);]]
    [[    v->full_at = ticks_of(now_ns) + lead * 9 / 10 + v->next.units * step_of(p);]])

weir_plant_fleet(a_fast_clock_drains_what_was_heard SYNCED
    [[    return ticks_of(now_ns - (sub_floor0(now_ns, v->heard_ns) >> SYNC_DRIFT));]]
    [[    return ticks_of(now_ns);]])

weir_plant_fleet(what_a_delta_leads_alone_is_left_out SYNCED
    [[        if p.cost > 0 and p.wait > u then]] [[        if p.cost < 0 and p.wait > u then]])

weir_plant_fleet(a_window_is_taken_for_over_when_it_may_not_be SYNCED
    [[    return is_perhaps(v, p, v->window - 1, now_ns);]]
    [[    return false;]])

weir_plant_fleet(what_a_window_admits_meanwhile_is_not_added_to_what_is_heard SYNCED
    [[    v->current = (uint64_t)sync_max((i128)v->current + v->next.units, 0);]] [[]])

# Clocks that are set: what is let in too often, and who waits too long.
weir_plant_fleet(leases_last_until_a_clock_that_was_set_back_is_there_again LEASED
    [[            if mark.at > last + SLACK then]] [[            if mark.at > last + CENTURY then]])

weir_plant_fleet(a_window_begins_anew_when_the_clock_is_set_back LEASED
    [[                index = p.pulled and index or i
            end
        end
        p.index, p.count = index, count]]
    [[                index = p.pulled and index or i
                count = p.pulled and 0 or count
            end
        end
        p.index, p.count = index, count]])

weir_plant_fleet(a_window_lasts_until_a_clock_that_was_set_back_is_there_again LEASED
    [[                count = n
                p.pulled = i > index and start(p, i) > now + SLACK]]
    [[                count = n]])

weir_plant_fleet(a_debt_is_forgotten_when_the_clock_is_set_back SYNCED
    [[        u, r = carry(u + du, r + dr)]]
    [[        if p.pulled then
            u, r, p.more_u = 0, 0, nil
        end
        u, r = carry(u + du, r + dr)]])

weir_plant_fleet(a_debt_lasts_until_a_clock_that_was_set_back_is_there_again SYNCED
    [[    u128 beyond = mul_wide(p->quota, 2 * nodes);]]
    [[    u128 beyond = mul_wide(p->quota, 1000 * nodes);]])

weir_plant_fleet(a_node_begins_anew_when_the_clock_is_set_back SYNCED
    [[    v->current = (uint64_t)heard->y;]]
    [[    v->current = before > v->window ? 0 : (uint64_t)heard->y;]])

weir_plant_fleet(a_node_stays_in_a_window_when_the_clock_is_set_back SYNCED
    [[    v->window = heard_window(v, p, heard);]]
    [[    v->window = before > heard_window(v, p, heard) ? before : heard_window(v, p, heard);]])

weir_plant_fleet(a_node_stays_in_a_window_when_the_clock_is_set_ahead SYNCED
    [[    v->window = heard_window(v, p, heard);]]
    [[    v->window = heard_window(v, p, heard);
    v->window = before > 0 && before + 1 < v->window ? before : v->window;]])
