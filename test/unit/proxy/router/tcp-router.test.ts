import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { TcpRouteSchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { TcpRouter } from "../../../../src/proxy/router/tcp-router.ts";

const LISTENER = "default/gw.tls";

type Init = Exclude<MessageInitShape<typeof TcpRouteSchema>, { $typeName: string }>;

function router(...routes: Init[]): TcpRouter {
  const made = new TcpRouter();
  for (const route of routes) made.put(create(TcpRouteSchema, route));
  return made;
}

function route(key: string, hostnames: string[], more: Init = {}): Init {
  return { key, parents: [{ listener: LISTENER, hostnames }], backends: [{ weight: 1, backend: key }], ...more };
}

test("the most specific name wins, and of equal ones the oldest route", () => {
  const found = router(
    route("any", []),
    route("wide", ["*.test"]),
    route("young", ["a.test"], { createdAtMs: 9n }),
    route("old", ["a.test"], { createdAtMs: 1n }),
  );
  assert.equal(found.find(LISTENER, "a.test").pick(), "old");
  assert.equal(found.find(LISTENER, "b.test").pick(), "wide");
  assert.equal(found.find(LISTENER, "").pick(), "any");
  found.remove("old");
  assert.equal(found.find(LISTENER, "a.test").pick(), "young");
});

test("a listener without a route for the name, and a route without a usable backend, have nothing to offer", () => {
  const broken = route("broken", ["b.test"], { backends: [{ weight: 1, invalidReason: "gone" }] });
  const found = router(route("a", ["a.test"]), broken, route("none", ["c.test"], { backends: [] }));
  assert.throws(() => found.find(LISTENER, "x.test").pick(), /route not found/);
  assert.throws(() => found.find("default/gw.other", "a.test").pick(), /route not found/);
  assert.throws(() => found.find(LISTENER, "b.test").pick(), /no valid backend/);
  assert.throws(() => found.find(LISTENER, "c.test").pick(), /no valid backend/);
});
