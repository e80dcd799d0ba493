/** What a controller shows of itself: what it read, what it serves to each Gateway, and how far its data planes are. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { controllerDump, controllerTasks, type DumpedController } from "../../../src/controller/dump.ts";
import type { ControllerOptions } from "../../../src/controller/options.ts";
import type { Diagnostic } from "../../../src/translator/shared/diagnostics.ts";
import type { ConnectedDataPlane } from "../../../src/xds/server/discovery.ts";
import { bind, listener, policy, route, to } from "../../support/gateway/data-plane.ts";

const PLANE: ConnectedDataPlane = {
  gateway: "default/gw",
  node: "gw-1",
  peer: "10.0.0.1:4000",
  connectedAt: "2026-01-01T00:00:00.000Z",
  sync: {},
};

const DIAGNOSTIC: Diagnostic = {
  code: "invalid",
  severity: "error",
  object: { group: "gateway.networking.k8s.io", kind: "HTTPRoute", namespace: "default", name: "r" },
  path: "spec.rules[0]",
  message: "is wrong",
};

function controller(more: Partial<DumpedController> = {}): DumpedController {
  return {
    translator: {
      gateways: () => ["default/gw", "default/empty"],
      resourcesOf: (gateway) =>
        gateway === "default/gw"
          ? [
              bind(),
              listener(),
              route("r", [to("b")]),
              policy("p", {
                units: [
                  {
                    unit: {
                      case: "basicAuthentication",
                      value: { users: [{ name: "a", passwordHash: "hidden-hash" }] },
                    },
                  },
                ],
              }),
            ]
          : [],
      diagnostics: () => [DIAGNOSTIC],
    },
    dataPlanes: [{ ...PLANE, node: "gw-2" }, PLANE],
    objects: { Gateway: 2, HTTPRoute: 1 },
    isReady: true,
    isLeader: false,
    // The dump shows what it is given; the flags have tests of their own.
    options: { className: "gwproxy", kubeconfig: "/root/.kube/config" } as ControllerOptions,
    logging: "info,xds=debug",
    ...more,
  };
}

type Json = Readonly<Record<string, unknown>>;

test("the dump names what was read, what each Gateway gets, its data planes, and what is wrong", () => {
  // A round trip through JSON is what operators get.
  const dump = JSON.parse(JSON.stringify(controllerDump(controller()))) as Readonly<Record<string, Json>>;
  assert.deepEqual(Object.keys(dump), [
    "version",
    "config",
    "ready",
    "leader",
    "objects",
    "gateways",
    "dataPlanes",
    "diagnostics",
    "diagnosticsLeftOut",
  ]);
  assert.deepEqual(dump["config"], { className: "gwproxy", logging: "info,xds=debug" });
  assert.deepEqual([dump["ready"], dump["leader"]], [true, false]);
  assert.deepEqual(dump["objects"], { Gateway: 2, HTTPRoute: 1 });
  const resources = dump["gateways"]?.["default/gw"] as Json; // as its keys say
  assert.deepEqual(Object.keys(resources["routes"] as Json), ["httproute/default/r"]);
  assert.match(JSON.stringify(resources["policies"]), /"passwordHash":"<redacted>"/);
  assert.doesNotMatch(JSON.stringify(dump), /hidden-hash/);
  assert.deepEqual(
    (dump["dataPlanes"] as unknown as ConnectedDataPlane[]).map(({ node }) => node),
    ["gw-1", "gw-2"],
  );
  assert.deepEqual(dump["diagnostics"], [
    { object: "HTTPRoute default/r", severity: "error", path: "spec.rules[0]", message: "is wrong" },
  ]);
});

test("of ten thousand diagnostics a thousand are shown, and the others counted", () => {
  const many = { ...controller().translator, diagnostics: () => Array.from({ length: 10_000 }, () => DIAGNOSTIC) };
  const dump = controllerDump(controller({ translator: many })) as {
    diagnostics: unknown[];
    diagnosticsLeftOut: number;
  };
  assert.deepEqual([dump.diagnostics.length, dump.diagnosticsLeftOut], [1_000, 9_000]);
});

test("tasks are the streams of data planes below the server that they are connected to", () => {
  const now = Date.parse(PLANE.connectedAt) + 1_500;
  const { tasks, truncated } = controllerTasks([PLANE], "127.0.0.1:9978", now);
  assert.equal(truncated, false);
  assert.deepEqual(
    tasks.map(({ kind, children }) => [kind, children.map(({ name, parent, ageMs }) => [name, parent, ageMs])]),
    [["listener", [["default/gw gw-1 10.0.0.1:4000", "xds 127.0.0.1:9978", 1_500]]]],
  );
  assert.deepEqual(controllerTasks([], undefined), { tasks: [], truncated: false });
  const crowd = controllerTasks(
    Array.from({ length: 10_001 }, () => PLANE),
    "a:1",
  );
  assert.deepEqual([crowd.tasks[0]?.children.length, crowd.truncated], [10_000, true]);
});
