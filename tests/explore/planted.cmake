# Bugs that the explorer must find. Each row: a name, the scenario that shows it, how many users may die, the
# source, and what is replaced by what.

weir_plant(miss_without_lock
    [[a key that two users insert at once exists once and is charged for both]] 0 limit/decide.c
    [[        lock_take(stripe, w->table.owner);
]] ""
    [[        lock_release(stripe);
        if (done) {]] [[        if (done) {]])

weir_plant(load_and_store_instead_of_cas
    [[two checks of one known key are charged both]] 0 limit/question.c
    [[    bool done = own != NULL &&
                shortcut_check(w, own, hash_sip(&w->secret, key, key_len), cost, now_ns, answer);
]] [[    struct algo_ask ask = {limiter_line(w, now_ns), cost, 0};
    struct hash hash = hash_sip(&w->secret, key, key_len);
    struct pair *slot = table_find(&w->table, table_key(&w->table, hash));
    bool done = own != NULL;
    if (!done) {
        return check_whole(w, key, key_len, cost, now_ns, answer);
    }
    store_release(&slot->word,
                  algo_decide(w->ops, &own->params,
                              (struct algo_state){load_acquire(&slot->word), NULL}, &ask).word);
    answer->verdict = WEIR_ALLOW;
]])

weir_plant(mover_without_the_victims_stripe
    [[a key that is checked while it is moved is charged exactly once]] 0 table/move.c
    [[    if (!table_enter_try(t, tag, held_tag)) {
        return false;
    }
]] ""
    [[    table_leave(t, tag, held_tag);
]] "")

weir_plant(mover_does_not_repair_first
    [[who moves a key that a dead mover left half moved does not bring back its past]] 1 table/move.c
    [[    (void)table_find_locked(t, (struct table_key){tag, (uint64_t)(to - t->lines)});
]] "")

weir_plant(repair_always_clears_the_original
    [[a key that is checked while it is moved is charged exactly once]] 1 table/table.c
    [[    if (clean != NULL) {]] [[    if (leaving != NULL) {]])

weir_plant(repair_always_keeps_the_original
    [[a key that is checked while it is moved is charged exactly once]] 1 table/table.c
    [[    if (clean != NULL) {]] [[    if (clean == leaving) {]])

weir_plant(record_copied_after_it_is_published
    [[log: a key that is checked while it is moved keeps its record]] 1 table/move.c
    [[            if (t->record_bytes != 0) {
                memcpy(table_record(t, slot), table_record(t, from), t->record_bytes); /* M3 */
            }
            change_marked(slot, arriving, was);                /* M4 */
]] [[            (void)pair_cas(slot, arriving, was);
            if (t->record_bytes != 0) {
                memcpy(table_record(t, slot), table_record(t, from), t->record_bytes);
            }
]])

weir_plant(marked_slots_are_taken
    [[a sweep by a clock far ahead does not touch what is being moved]] 0 table/claim.c
    [[(tag & TAG_MARKS) == 0 && t->record_bytes == 0]] [[t->record_bytes == 0]])

weir_plant(a_far_future_is_pulled_down_without_a_swap
    [[a state of a far future that is swept while it is checked is charged once]] 0 table/claim.c
    [[    return pair_cas(pick->slot, seen, pick->seen);]]
    [[    store_release(&pick->slot->word, pick->debt.word);
    return true;]])

weir_plant(parameters_announced_before_they_are_written
    [[a check decides by the old parameters or by the new, never by a mixture]] 0 limit/change.c
    [[    uint64_t words[WORDS];
    memcpy(words, spec, sizeof words);
]] [[    uint64_t words[WORDS];
    memcpy(words, spec, sizeof words);
    store_release(&head->version, next);
]])

weir_plant(unblocked_without_the_lock
    [[a block that is set while the last other one is lifted holds]] 0 table/blocks.c
    [[    lock_take(&b->counts->lock, b->owner);
    struct pair *place = find(b, tag);]] [[    struct pair *place = find(b, tag);]]
    [[    lock_release(&b->counts->lock);
    return place != NULL;]] [[    return place != NULL;]])

weir_plant(second_stripe_is_waited_for
    [[two who need each other's stripe to make room both find it]] 0 table/table.c
    [[lock_try(stripe, t->owner);]] [[(lock_take(stripe, t->owner), true);]])

weir_plant(reset_retries_with_what_it_saw_first
    [[a reset and a check come one after the other]] 0 limit/verbs.c
    [[            removed = seen.tag == key.tag && table_remove(&w->table, slot, seen) ? 1 : -1;
]] [[            while (removed < 0) {
                removed = seen.tag == key.tag && table_remove(&w->table, slot, seen) ? 1 : -1;
            }
]])

weir_plant_lock(nobody_is_woken
    [[lock_wake(lock)]] [[(void)lock]])

weir_plant_lock(who_waited_forgets_the_others
    [[mine = lock_number(owner) << 1 | WAITED]] [[mine = lock_number(owner) << 1]])

weir_plant_lock(a_dead_owners_word_is_overwritten
    [[take_word(lock, seen, mine)]] [[(store_release(&lock->word, mine), true)]])

weir_plant_lock(the_living_count_as_dead
    [[lock_owner_is_dead(owner, seen >> 1)]] [[true]])

weir_plant_lock(the_word_is_taken_without_a_swap
    [[!cas_u64(&lock->word, seen, mine)]]
    [[load_acquire(&lock->word) != seen || (store_release(&lock->word, mine), false)]])
