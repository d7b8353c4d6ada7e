"""Prints the description of a listener for one set of rules: schemathesis.py URL LIMIT...

What depends on the rules is made true for rules with these limits, whose keys have one part. Without that, nearly every
request that schemathesis makes up would name a limit that does not exist."""
import json
import sys
import urllib.request

with urllib.request.urlopen(sys.argv[1]) as reply:
    DOC = json.load(reply)


def narrow(schema):
    """Of the members of a question."""
    members = schema.get("properties", {})
    if "limit" in members:
        members["limit"] = {"enum": sys.argv[2:]}
        members.pop("tier", None)
    if "ttl_ms" in members:
        members["ttl_ms"]["maximum"] = 600000  # server.reservation_ttl is ten minutes
    if "key" in members:
        one = {"type": "string", "minLength": 1}
        members["key"] = {"oneOf": [one, {"type": "array", "minItems": 1, "maxItems": 1, "items": one}]}
        schema["required"] = sorted({*schema["required"], "key"})


for name, question in DOC["components"]["schemas"].items():
    if name[0].islower() or name == "ModeChange":  # schemas of operations have the names of those
        for choice in question.get("oneOf", [question]):
            narrow(choice)
for parameter in DOC["paths"]["/v1/keys"]["get"]["parameters"]:
    if parameter["name"] == "limit":
        parameter["schema"] = {"enum": sys.argv[2:]}
    elif parameter["name"] == "key":
        parameter["required"] = True
        parameter["schema"].update(minItems=1, maxItems=1)
DOC["paths"]["/v1/keys"]["get"]["parameters"].pop()  # tier
del DOC["paths"]["/v1/events"]  # a reply without an end
json.dump(DOC, sys.stdout)
