"""Uses the client that openapi-python-client has generated: story.py URL-OF-HTTP URL-OF-ADMIN SECRET-OF-ADMIN."""
import sys

from weir_client import AuthenticatedClient, Client
from weir_client.api.admin import block, get_limit, inspect_key, list_blocks, set_mode, status, top_denied
from weir_client.api.http import cancel, check, check_batch, peek, rate_limit, reserve, settle, throttle
from weir_client.models import (
    Answer, Attributes, Batch, Block, Cancel, CheckByAttributes, CheckByName, Denial, Failure, ModeChange, ModeName, PeekByName,
    RateLimitDescriptor, RateLimitEntry, RateLimitPerSecond, RateLimitPerSecondUnit, RateLimitRequest, Reservation, Reserve, Settle, Throttle)

http, admin, secret = sys.argv[1:]
public = Client(base_url=http)
operator = AuthenticatedClient(base_url=admin, token=secret)


def attributes(**values):
    made = Attributes()
    made.additional_properties = values
    return made


# By name, by attributes, and denied.
for left in (2, 1, 0):
    answer = check.sync(client=public, body=CheckByName(limit="api", key="alice"))
    assert isinstance(answer, Answer) and answer.verdict == "allow" and answer.remaining == left, answer
answer = check.sync(client=public, body=CheckByName(limit="api", key=["alice"], cost=1))
assert isinstance(answer, Denial) and answer.verdict == "deny" and answer.retry_after_ms > 0, answer
answer = check.sync(client=public, body=CheckByAttributes(attributes=attributes(path="/api/x", user="bob"), cost=2))
assert answer.verdict == "allow" and answer.limit == "api" and answer.remaining == 1, answer
answer = peek.sync(client=public, body=PeekByName(limit="api", key="bob"))
assert answer.remaining == 1, answer
answer = check.sync(client=public, body=CheckByName(limit="none", key="x"))
assert isinstance(answer, Failure) and "none" in answer.detail, answer

# Several in one request.
batch = check_batch.sync(client=public, body=Batch(requests=[
    CheckByName(limit="api", key="carol"), CheckByAttributes(attributes=attributes(path="/api/x", user="alice"))]))
assert [r.verdict for r in batch.results] == ["allow", "deny"], batch

# Reservations, and a rate that comes with the question.
held = reserve.sync(client=public, body=Reserve(limit="api", key="dave", cost=3))
assert isinstance(held, Reservation), held
assert settle.sync(client=public, body=Settle(reservation=held.reservation, actual=1)).remaining == 2
held = reserve.sync(client=public, body=Reserve(limit="api", key="dave", cost=2, ttl_ms=600000))
assert cancel.sync(client=public, body=Cancel(reservation=held.reservation)).remaining == 2
refused = reserve.sync(client=public, body=Reserve(limit="api", key="dave", ttl_ms=600001))
assert isinstance(refused, Failure) and "ttl_ms" in refused.detail, refused
assert throttle.sync(client=public, body=Throttle(key="k", burst=1, count=1, period_ms=3600000)).verdict == "allow"

# Envoy's rate limit service as JSON.
entry = [RateLimitEntry(key="user", value="eve")]
told = rate_limit.sync(client=public, body=RateLimitRequest(domain="d", descriptors=[
    RateLimitDescriptor(entries=entry),
    RateLimitDescriptor(entries=entry, limit=RateLimitPerSecond(requests_per_unit=1000000000, unit=RateLimitPerSecondUnit.SECOND))]))
assert told.overall_code == "OK" and len(told.statuses) == 2, told

# Operators.
answer = block.sync(client=operator, body=Block(limit="api", key="mallory", for_ms=60000, why="a test"))
assert answer.blocked_ms > 0, answer
assert check.sync(client=public, body=CheckByName(limit="api", key="mallory")).reason == "blocked"
assert [b.why for b in list_blocks.sync(client=operator).blocks] == ["a test"]
assert inspect_key.sync(client=operator, limit="api", key=["mallory"]).blocked_ms > 0
assert get_limit.sync(client=operator, name="api")
assert top_denied.sync(client=operator).denied[0].key == "alice"
assert set_mode.sync(client=operator, body=ModeChange(mode=ModeName.SHADOW)).mode == "shadow"
assert status.sync(client=operator).mode == "shadow"
assert set_mode.sync(client=operator, body=ModeChange(mode=ModeName.ENFORCE)).mode == "enforce"
print("openapi-python-client: the story is told")
