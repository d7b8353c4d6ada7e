/* Limits from a rule file instead of code. */
#include <stdio.h>
#include <weir_rules.h>

static const char rules_text[] =
    "limits:\n"
    "  - {name: login, when: {method: POST, path: /login}, key: [ip], rate: 5/min}\n"
    "  - name: search\n"
    "    when: {path: /search/**}\n"
    "    key: [user|ip]\n"
    "    rate: 3/min\n"
    "    tiers: {by: tier, default: free, free: {}, pro: {rate: 1k/min}}\n"
    "  - {name: everyone, key: [], rate: 50k/s}\n";

static int ask(struct weir_rules *rules, const char *path, const char *ip, const char *tier)
{
    struct weir_rules_attribute with[] = {
        WEIR_RULES_ATTRIBUTE("path", path), WEIR_RULES_ATTRIBUTE("ip", ip),
        WEIR_RULES_ATTRIBUTE("tier", tier), /* an empty value counts as missing */
    };
    struct weir_rules_question q = {.attributes = with, .attributes_count = 3};
    struct weir_rules_answer a;
    struct weir_error error;
    if (weir_rules_ask(rules, &q, &a, &error) != 0) {
        printf("%-14s %-20s error: %s\n", path, ip, error.text);
        return 1;
    }
    printf("%-14s %-20s %-5s by %s%s%s, %llu left\n", path, ip,
           a.answer.verdict == WEIR_ALLOW ? "allow" : "deny", a.limit, a.tier[0] ? "/" : "", a.tier,
           (unsigned long long)a.answer.remaining);
    return a.answer.verdict != WEIR_ALLOW;
}

int main(void)
{
    struct weir_rules *rules;
    struct weir_error error;
    int denied = 0;
    if (weir_rules_open_text(&rules, "rules", rules_text, sizeof rules_text - 1, NULL, &error) !=
        0) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    /* This is one client, with different spellings of its address and the path. */
    denied += ask(rules, "/search/cats", "203.0.113.7", "");
    denied += ask(rules, "/search/dogs", "::ffff:203.0.113.7", "");
    denied += ask(rules, "//search/./", "203.0.113.7", "");
    denied += ask(rules, "/search/birds", "::FFFF:CB00:7107", "");
    denied += ask(rules, "/search/fish", "203.0.113.7", "pro");
    denied += ask(rules, "/about", "203.0.113.7", "");
    weir_rules_close(rules);
    return denied == 1 ? 0 : 1;
}
