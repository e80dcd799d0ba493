/** The dump of the configuration: its keys, its words, and that no resource of any shape puts a secret into it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, ScalarType, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";
import { reflect, type ReflectMessage } from "@bufbuild/protobuf/reflect";
import fc from "fast-check";
import {
  AuthenticationMode,
  EndpointsSchema,
  TcpRouteSchema,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { RESOURCE_SCHEMAS, resourceOf } from "../../../src/ir/encode.ts";
import type { Resource, ResourceType } from "../../../src/ir/resource.ts";
import type { ProxyState } from "../../../src/proxy/proxy.ts";
import { configDump, dumpResources } from "../../../src/runtime/dump.ts";
import { AppliedUpdates } from "../../../src/runtime/applied-updates.ts";
import { bind, listener, policy, route, serviceBackend, staticBackend, to } from "../../support/gateway/data-plane.ts";
import { assertProperty } from "../../support/fixtures/seed.ts";

function stateOf(resources: readonly Resource[], endpoints: ProxyState["endpoints"] = []): ProxyState {
  const listeners = [{ bind: "80/default/gw", gateway: "default/gw", port: 80, boundPort: 8080 }];
  return { resources, listeners, endpoints, workloadIdentity: null, credentials: [] };
}

/** The parts of the dump that tests read. */
type Dump = Readonly<Record<"binds" | "policies" | "backends" | "services" | "workloads", readonly Json[]>> &
  Readonly<Record<"routes" | "sync" | "version" | "config", Json>>;
type Json = Readonly<Record<string, unknown>>;

function dump(state: ProxyState, applied: AppliedUpdates = new AppliedUpdates()): Dump {
  // A round trip through JSON is what operators get; the shape is what the tests below check.
  return JSON.parse(JSON.stringify(configDump(state, { config: { workers: 1 }, applied }))) as Dump;
}

const ENDPOINT = {
  backend: "backend/default/svc",
  endpoint: "10.0.0.1:80",
  health: 1,
  requestLatency: 0.5,
  pendingRequests: 0,
  totalRequests: 3,
  consecutiveFailures: 0,
  timesEjected: 0,
  evictedUntil: null,
};

test("the dump has every key, and objects under the names that users gave them", () => {
  const resources = [
    bind(),
    listener(),
    route("r", [to("b")]),
    resourceOf("TcpRoute", create(TcpRouteSchema, { key: "tcproute/default/t" })),
    policy("p", {
      override: true,
      units: [{ unit: { case: "apiKeyAuthentication", value: { mode: AuthenticationMode.STRICT } } }],
    }),
    staticBackend("b", 80),
    serviceBackend("backend/default/svc", 80),
    resourceOf("Endpoints", create(EndpointsSchema, { key: "backend/default/svc" })),
  ];
  const ejected = { ...ENDPOINT, endpoint: "10.0.0.2:80", evictedUntil: "2026-01-01T00:00:00.000Z" };
  const found = dump(stateOf(resources, [ENDPOINT, ejected]));
  assert.deepEqual(Object.keys(found), [
    "binds",
    "routes",
    "policies",
    "backends",
    "models",
    "modelCatalogs",
    "services",
    "workloads",
    "workloadIdentity",
    "credentials",
    "version",
    "config",
    "sync",
  ]);
  assert.deepEqual(found.binds[0], {
    key: "80/default/gw",
    address: 8080,
    protocol: "http",
    mode: "standard",
    tunnelProtocol: "direct",
    listeners: {
      "default/gw.http": {
        key: "default/gw.http",
        gatewayName: "gw",
        gatewayNamespace: "default",
        listenerName: "http",
        listenerSet: null,
        hostname: "",
        protocol: "http",
        tls: null,
        routes: ["httproute/default/r"],
        tcpRoutes: [],
      },
    },
  });
  assert.deepEqual(Object.keys(found.routes), ["httproute/default/r", "tcproute/default/t"]);
  const [named] = found.policies;
  assert.deepEqual(named?.["name"], { kind: "GwPolicy", namespace: "default", name: "p" });
  assert.equal(named?.["inheritance"], "Override");
  assert.deepEqual(named?.["policy"], { units: [{ apiKeyAuthentication: { mode: "Strict" } }] });
  const { backend: _backend, endpoint: _endpoint, ...info } = ENDPOINT;
  assert.deepEqual(found.services[0]?.["endpoints"], [
    {
      active: { "10.0.0.1:80": { endpoint: { name: "10.0.0.1:80" }, info } },
      rejected: {
        "10.0.0.2:80": { endpoint: { name: "10.0.0.2:80" }, info: { ...info, evictedUntil: ejected.evictedUntil } },
      },
    },
  ]);
  assert.deepEqual([found.services[0]?.["name"], found.services[0]?.["namespace"]], ["svc", "local"]);
  assert.deepEqual(found.workloads, []);
});

test("sync says which version serves and which one was refused, and why", () => {
  const applied = new AppliedUpdates(() => new Date(0));
  const good = { ...bind(), version: "1" };
  applied.record({ set: [good], removed: [] }, { refused: [] });
  applied.record({ set: [{ ...good, version: "2" }], removed: [] }, { refused: [{ ...good, reason: "no port" }] });
  const at = "1970-01-01T00:00:00.000Z";
  assert.deepEqual(Object.values(dump(stateOf([]), applied).sync), [
    {
      accepted: { key: "80/default/gw", version: "1", at },
      rejected: { key: "80/default/gw", version: "2", at, message: "no port" },
    },
  ]);
});

const SECRET = "SECRET-TEXT";
const MAX_DEPTH = 6;

/** Fills every field of a message, secrets with a mark, and chooses one member of each oneof. */
function fill(node: ReflectMessage, choose: (below: number) => number, depth = 0): ReflectMessage {
  for (const member of node.desc.members) {
    const field = member.kind === "oneof" ? member.fields[choose(member.fields.length)] : member;
    if (field === undefined || (depth >= MAX_DEPTH && field.message !== undefined)) continue;
    fillField(node, field, choose, depth);
  }
  return node;
}

function fillField(node: ReflectMessage, field: DescField, choose: (below: number) => number, depth: number): void {
  switch (field.fieldKind) {
    case "scalar":
      node.set(field, scalarOf(field, field.scalar));
      return;
    case "enum":
      node.set(field, field.enum.values[choose(field.enum.values.length)]?.number ?? 0);
      return;
    case "message":
      if (!isWellKnown(field.message)) node.set(field, fill(reflect(field.message), choose, depth + 1));
      return;
    case "list":
      if (field.listKind === "message") node.get(field).add(fill(reflect(field.message), choose, depth + 1));
      else if (field.listKind === "scalar") node.get(field).add(scalarOf(field, field.scalar));
      return;
    case "map":
      return;
  }
}

function isWellKnown({ typeName }: DescMessage): boolean {
  return typeName.startsWith("google.protobuf.");
}

function scalarOf(field: DescField, scalar: ScalarType): string | number | bigint | boolean | Uint8Array {
  switch (scalar) {
    case ScalarType.STRING:
      return field.proto.options?.debugRedact === true ? SECRET : "text";
    case ScalarType.BOOL:
      return true;
    case ScalarType.BYTES:
      return Buffer.from(SECRET);
    case ScalarType.INT64:
    case ScalarType.UINT64:
      return 1n;
    default:
      return 1;
  }
}

test("no resource of any shape puts a secret, or a name of the IR, into the dump", () => {
  const types = Object.keys(RESOURCE_SCHEMAS) as ResourceType[];
  const runs = fc.tuple(fc.constantFrom(...types), fc.infiniteStream(fc.nat(1_000)));
  assertProperty(
    fc.property(runs, ([type, numbers]) => {
      const choose = (below: number): number => Number(numbers.next().value) % Math.max(1, below);
      const schema: DescMessage = RESOURCE_SCHEMAS[type];
      const message: Message = fill(reflect(schema, create(schema)), choose).message;
      // The message is of the type that its schema makes.
      const resource = { type, key: "key", version: "1", message } as Resource;
      const served = { resources: [resource], listeners: [], endpoints: [] };
      // The second is what a controller shows of each Gateway.
      const text = JSON.stringify([dump(stateOf([resource])), dumpResources(served)]);
      assert.ok(!text.includes(SECRET), `${type} shows a secret`);
      assert.ok(!text.includes(Buffer.from(SECRET).toString("base64")), `${type} shows secret bytes`);
      assert.doesNotMatch(text, /"[A-Z0-9]+(_[A-Z0-9]+)+"/);
    }),
    { numRuns: 300 },
  );
});
