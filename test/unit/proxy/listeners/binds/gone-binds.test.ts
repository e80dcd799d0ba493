/** Binds come and go for as long as the process lives: of one that is gone nothing is kept. */
import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { test } from "node:test";
import { ListenerSchema } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { FrontendSet } from "../../../../../src/proxy/listeners/frontends.ts";
import { DelegationTable } from "../../../../../src/proxy/router/delegation.ts";
import { ListenerTable } from "../../../../../src/proxy/router/listener-table.ts";
import { PolicySet } from "../../../../../src/proxy/policies/policy-set.ts";
import { makeDeps } from "../../../../support/gateway/exchange.ts";
import { noExporters } from "../../../../support/servers/fake-collector.ts";

const policies = new PolicySet(makeDeps());

function frontends(): FrontendSet {
  return new FrontendSet({
    policies,
    exporters: noExporters(),
    random: Math.random,
    podName: "pod",
    trustedProxies: [],
  });
}

test("a Frontend stays the same object while its Bind is there, and is forgotten with it", () => {
  const set = frontends();
  const [kept, gone] = [set.of("80/default/a"), set.of("81/default/a")];
  set.keep(new Map([["80/default/a", true]]));
  assert.equal(set.of("80/default/a"), kept);
  assert.notEqual(set.of("81/default/a"), gone);
});

test("what handshakes need is kept for as long as the Bind has a listener", () => {
  const identities = { current: () => "none" };
  // A listener without routes follows no delegation.
  const delegations = Object.create(DelegationTable.prototype) as DelegationTable;
  const table = new ListenerTable({ policies, frontends: frontends(), identities, delegations });
  const bind = "443/default/a";
  const [one, two] = ["one", "two"].map((key) => create(ListenerSchema, { key, bind, hostname: `${key}.test` }));
  assert.ok(one !== undefined && two !== undefined);
  table.put(one);
  table.put(two);
  const first = table.tlsOf(bind);
  assert.equal(table.tlsOf(bind), first);
  table.withdraw("one");
  table.remove("one");
  assert.notEqual(table.tlsOf(bind), first, "a listener has changed");
  assert.equal(table.tlsOf(bind), table.tlsOf(bind));
  table.withdraw("two");
  table.remove("two");
  assert.notEqual(table.tlsOf(bind), table.tlsOf(bind), "connections that are left ask without a trace");
});
