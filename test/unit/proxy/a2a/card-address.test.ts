/** URLs in agent cards, mapped to the gateway for every way in which a route can lead to an agent. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { HeaderList } from "../../../../src/lib/header-list.ts";
import {
  addressOfCall,
  addressOfCard,
  printInterfaceUrl,
  readInterfaceUrl,
  type CardAddress,
} from "../../../../src/proxy/a2a/card-address.ts";

const SUFFIX = "/.well-known/agent-card.json";

interface Place {
  /** Path of the client and path at the agent. */
  readonly outside: string;
  readonly inside?: string;
  /** Prefix that was matched, and the one in its place. */
  readonly prefix?: readonly [matched: string, replacement: string];
  readonly scheme?: "http" | "https";
  readonly forwardedProto?: string;
}

function exchangeOf({ outside, inside = outside, prefix, scheme = "http", forwardedProto }: Place) {
  return {
    originalTarget: outside,
    target: inside,
    originalHost: "api.example.com",
    originalScheme: scheme,
    requestHeaders: new HeaderList(forwardedProto === undefined ? [] : ["x-forwarded-proto", forwardedProto]),
    matchedPrefix: prefix?.[0],
    replacementPrefix: prefix?.[1],
  };
}

function map(text: string, address: CardAddress): string {
  const url = readInterfaceUrl(text, address.cardPath);
  return url === undefined ? text : printInterfaceUrl(url, address);
}

function cardAt(outside: string, more: Omit<Place, "outside"> = {}): CardAddress {
  const inside = more.inside === undefined ? undefined : more.inside + SUFFIX;
  const exchange = exchangeOf({ ...more, outside: outside + SUFFIX, ...(inside === undefined ? {} : { inside }) });
  return addressOfCard(exchange, SUFFIX);
}

const TEAM = cardAt("/team", { inside: "", prefix: ["/team", "/"] });
const RENAMED = cardAt("/team/a", { inside: "/agents/a", prefix: ["/team", "/agents"] });
const FULL = cardAt("/team", { inside: "/agent" });
const PLAIN = cardAt("");
const OUT = "http://api.example.com";

const MAPPED: readonly (readonly [about: string, address: CardAddress, from: string, to: string])[] = [
  ["a stripped prefix comes back", TEAM, "http://10.0.0.8:9000/rpc?v=2", `${OUT}/team/rpc?v=2`],
  ["an agent without a path", TEAM, "http://10.0.0.8:9000", `${OUT}/team`],
  ["a query on a bare host", TEAM, "http://10.0.0.8:9000?v=2", `${OUT}/team?v=2`],
  ["a slash at the end stays", TEAM, "http://10.0.0.8:9000/rpc/", `${OUT}/team/rpc/`],
  ["a root that is written out stays", TEAM, "http://10.0.0.8:9000/", `${OUT}/team/`],
  ["slashes are not doubled", TEAM, "http://10.0.0.8:9000//rpc", `${OUT}/team/rpc`],
  ["a replaced prefix comes back", RENAMED, "https://in/agents/a/rpc", `${OUT}/team/a/rpc`],
  ["another agent below the replacement", RENAMED, "https://in/agents/b", `${OUT}/team/b`],
  ["the replacement ends with a segment", RENAMED, "https://in/agents2/x", `${OUT}/team/a/agents2/x`],
  ["a path below the base of the agent", FULL, "http://in/agent/rpc", `${OUT}/team/rpc`],
  ["the base ends with a segment", FULL, "http://in/agents/rpc", `${OUT}/team/agents/rpc`],
  ["a path elsewhere at the agent", FULL, "http://in/rpc", `${OUT}/team/rpc`],
  ["a path is relative to the agent's origin", FULL, "/agent/rpc", `${OUT}/team/rpc`],
  ["a name is relative to the card", FULL, "rpc", `${OUT}/team/.well-known/rpc`],
  ["an authority without a scheme", FULL, "//10.0.0.8/agent/rpc", `${OUT}/team/rpc`],
  ["backslashes, as clients read them", PLAIN, "http:\\\\10.0.0.8\\rpc", `${OUT}/rpc`],
  ["line breaks, as clients read them", PLAIN, " ht\ntp://10.0.0.8/rpc", `${OUT}/rpc`],
  ["names and passwords go", PLAIN, "http://a:b@10.0.0.8/rpc#x", `${OUT}/rpc`],
  ["a target of gRPC", PLAIN, "10.0.0.8:50051", "10.0.0.8:50051"],
  ["a named target of gRPC", PLAIN, "agent:50051", "agent:50051"],
  ["another scheme", PLAIN, "grpc://10.0.0.8:50051", "grpc://10.0.0.8:50051"],
  ["nothing", PLAIN, "", ""],
];

for (const [about, address, from, to] of MAPPED)
  test(`URL of an interface: ${about}`, () => assert.equal(map(from, address), to));

test("the scheme is that of x-forwarded-proto, then that of the connection", () => {
  const https = { scheme: "https" } as const;
  assert.equal(cardAt("/", https).origin, "https://api.example.com");
  assert.equal(cardAt("/", { ...https, forwardedProto: "http" }).origin, "http://api.example.com");
  assert.equal(cardAt("/", { forwardedProto: "https, http" }).origin, "https://api.example.com");
  assert.equal(cardAt("/", { ...https, forwardedProto: "javascript" }).origin, "https://api.example.com");
});

const CALLED: readonly (readonly [about: string, place: Place, suffix: string, from: string, to: string])[] = [
  ["the same path", { outside: "/rpc" }, "", "http://in/rpc", `${OUT}/rpc`],
  [
    "a prefix",
    { outside: "/team/rpc", inside: "/rpc", prefix: ["/team", "/"] },
    "",
    "http://in/rpc",
    `${OUT}/team/rpc`,
  ],
  ["a full rewrite", { outside: "/team/rpc", inside: "/a/rpc" }, "", "http://in/a/rpc", `${OUT}/team/rpc`],
  ["an agent that does not know its base", { outside: "/a/rpc" }, "", "http://in/rpc", `${OUT}/a/rpc`],
  [
    "a path of HTTP+JSON",
    { outside: "/t/rest/v1/card", inside: "/rest/v1/card" },
    "/v1/card",
    "http://in/rest",
    `${OUT}/t/rest`,
  ],
  ["a tenant", { outside: "/t/rest/me/card", inside: "/rest/me/card" }, "/card", "http://in/rest", `${OUT}/t/rest`],
];

for (const [about, place, suffix, from, to] of CALLED)
  test(`URL of an interface in the result of a call: ${about}`, () => {
    const exchange = exchangeOf(place);
    const path = readInterfaceUrl(from, place.inside ?? place.outside)?.path ?? "";
    assert.equal(map(from, addressOfCall(exchange, suffix, [path])), to);
  });
