/** A refusal travels from a data plane over a real stream to the condition of the object that caused it, and back. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { KubeObject } from "../../../src/api/object.ts";
import { createStatusFeed } from "../../../src/controller/status-feed.ts";
import type { DesiredStatus } from "../../../src/status/desired.ts";
import { createTranslator } from "../../../src/translator/translate.ts";
import { createXdsClient, type XdsClient } from "../../../src/xds/client/connection.ts";
import { createXdsServer } from "../../../src/xds/server/discovery.ts";
import { recordingLog } from "../../support/gateway/silent-log.ts";
import { dataPlane, quiet, testFeed, watch, type DataPlane } from "../xds/resources.ts";

const CONTROLLER = "gwproxy.dev/gwproxy";
const GATEWAY = "default/main";

type TestObject = KubeObject & { readonly spec: unknown };

const gateway: TestObject = {
  apiVersion: "gateway.networking.k8s.io/v1",
  kind: "Gateway",
  metadata: { name: "main", namespace: "default", generation: 1 },
  spec: { gatewayClassName: "gwproxy", listeners: [{ name: "http", port: 80, protocol: "HTTP" }] },
};
const backend: TestObject = {
  apiVersion: "gwproxy.dev/v1alpha1",
  kind: "GwBackend",
  metadata: { name: "b", namespace: "default", generation: 1 },
  spec: { static: { host: "127.0.0.1", port: 8080 } },
};
const route: TestObject = {
  apiVersion: "gateway.networking.k8s.io/v1",
  kind: "HTTPRoute",
  metadata: { name: "r", namespace: "default", generation: 1 },
  spec: {
    parentRefs: [{ name: "main" }],
    rules: [{ backendRefs: [{ group: "gwproxy.dev", kind: "GwBackend", name: "b" }] }],
  },
};
const policy = (request: string): TestObject => ({
  apiVersion: "gwproxy.dev/v1alpha1",
  kind: "GwPolicy",
  metadata: { name: "p", namespace: "default", generation: 1 },
  spec: {
    targetRefs: [{ group: "gateway.networking.k8s.io", kind: "Gateway", name: "main" }],
    traffic: { timeouts: { request } },
  },
});

interface Controller {
  change(...objects: readonly TestObject[]): void;
  remove(object: KubeObject): void;
  connect(plane: DataPlane): XdsClient;
  /** Resolves when the last status of the kind has this condition, written "Type Status Reason: message". */
  said(kind: string, condition: string): Promise<void>;
  /** The conditions of the last status of the kind, written in the same way. */
  now(kind: string): readonly string[];
  /** Resolves when no data plane is connected. */
  alone(): Promise<void>;
}

async function startController(t: TestContext): Promise<Controller> {
  const translator = createTranslator({ controllerName: CONTROLLER, implicitClass: "gwproxy" });
  const last = new Map<string, DesiredStatus>();
  const watched = watch();
  const statuses = createStatusFeed({
    translator,
    controllerName: CONTROLLER,
    put(status) {
      last.set(status.id.kind, status);
      watched.changed();
    },
    log: quiet,
  });
  const feed = testFeed();
  const apply = (events: Parameters<typeof translator.apply>[0]): void => {
    const step = translator.apply(events);
    const update = step.byGateway.get(GATEWAY);
    if (update !== undefined) feed.change(GATEWAY, update.set, update.removed);
    statuses.follow(step);
  };
  const change = (...objects: readonly TestObject[]): void =>
    apply(objects.map((object) => ({ type: "set", object }) as const));
  change(gateway, backend, route, policy("1s"));
  const server = createXdsServer({
    log: quiet,
    feed,
    ...statuses.answers,
    onClose(name, stream) {
      statuses.answers.onClose(name, stream);
      watched.changed();
    },
  });
  t.after(() => server.stop());
  const port = await server.listen({ host: "127.0.0.1", port: 0 });
  return {
    change,
    remove({ apiVersion, kind, metadata: { namespace = "", name } }) {
      apply([{ type: "delete", id: { group: apiVersion.split("/")[0] ?? "", kind, namespace, name } }]);
    },
    connect(plane) {
      const client = createXdsClient({
        address: `http://127.0.0.1:${port}`,
        gateway: GATEWAY,
        log: quiet,
        apply: plane.apply,
      });
      t.after(() => client.stop());
      client.start();
      return client;
    },
    said: (kind, condition) => watched.until(() => conditionsOf(last.get(kind)).includes(condition)),
    now: (kind) => conditionsOf(last.get(kind)),
    alone: () => watched.until(() => server.connected(GATEWAY) === 0),
  };
}

function conditionsOf(status: DesiredStatus | undefined): string[] {
  if (status === undefined) return [];
  const conditions = status.form === "listed" ? status.entries.flatMap((entry) => entry.conditions) : status.conditions;
  return conditions.map(({ type, status: value, reason, message }) => `${type} ${value} ${reason}: ${message}`);
}

const ATTACHED = "Attached True Attached: the policy is in force";
const REFUSED = "Attached False Pending: a data plane refused it: the timeout is too short";

test("what a data plane refuses becomes a condition on each object, and goes when a mended version is applied", async (t) => {
  const controller = await startController(t);
  const plane = dataPlane();
  plane.refuses.set("policy/default/p", "the timeout is too short");
  plane.refuses.set("backend/default/b", "no such host");
  plane.refuses.set("httproute/default/r", "no such match");
  plane.refuses.set("80/default/main", "port 80 is taken");
  controller.connect(plane);
  await Promise.all([
    controller.said("GwPolicy", REFUSED),
    controller.said("GwBackend", "Accepted False TranslationError: a data plane refused it: no such host"),
    controller.said("HTTPRoute", "ResolvedRefs False TranslationError: a data plane refused it: no such match"),
    controller.said(
      "Gateway",
      "Programmed False Invalid: no listener can serve; listener http: a data plane refused it: port 80 is taken",
    ),
  ]);
  plane.refuses.clear();
  controller.change(policy("2s"), { ...backend, spec: { static: { host: "127.0.0.1", port: 8081 } } });
  await Promise.all([
    controller.said("GwPolicy", ATTACHED),
    controller.said("GwBackend", "Accepted True Accepted: translated"),
  ]);
});

test("a policy that was in force is no longer attached when its next version is refused", async (t) => {
  const controller = await startController(t);
  const plane = dataPlane();
  controller.connect(plane);
  await controller.said("GwPolicy", ATTACHED);
  plane.refuses.set("policy/default/p", "the timeout is too short");
  controller.change(policy("3s"));
  await controller.said("GwPolicy", REFUSED);
});

test("a refusal outlives its data plane until one that replaces it has applied the resource", async (t) => {
  const controller = await startController(t);
  const first = dataPlane();
  first.refuses.set("policy/default/p", "the timeout is too short");
  const client = controller.connect(first);
  await controller.said("GwPolicy", REFUSED);
  await client.stop();
  await controller.alone();
  const edited = policy("1s");
  controller.change({ ...edited, metadata: { ...edited.metadata, generation: 2 } });
  assert.ok(controller.now("GwPolicy").includes(REFUSED));
  controller.connect(dataPlane());
  await controller.said("GwPolicy", ATTACHED);
});

test("a policy that is deleted and made again waits for a new acknowledgement", async (t) => {
  const controller = await startController(t);
  const client = controller.connect(dataPlane());
  await controller.said("GwPolicy", ATTACHED);
  await client.stop();
  await controller.alone();
  controller.remove(policy("1s"));
  controller.change(policy("1s"));
  await controller.said("GwPolicy", "Attached Unknown Pending: no data plane has acknowledged the policy yet");
});

test("errors of an object without a status are written to the log, once", () => {
  const translator = createTranslator({ controllerName: CONTROLLER, implicitClass: "gwproxy" });
  const { log, lines } = recordingLog();
  const written: DesiredStatus[] = [];
  const put = (status: DesiredStatus): void => void written.push(status);
  const statuses = createStatusFeed({ translator, controllerName: CONTROLLER, put, log });
  const parameters: TestObject = {
    apiVersion: "gwproxy.dev/v1alpha1",
    kind: "GwParameters",
    metadata: { name: "sizes", namespace: "default" },
    spec: { deployment: { spec: { replicas: "two" } } },
  };
  statuses.follow(translator.apply([{ type: "set", object: parameters }]));
  statuses.follow(translator.apply([{ type: "set", object: gateway }]));
  assert.deepEqual(
    written.map(({ id }) => id.kind),
    ["Gateway"],
  );
  assert.equal(lines.length, 1, lines.join(""));
  assert.match(lines[0] ?? "", /"must be a number"/);
  assert.match(lines[0] ?? "", /"object":"GwParameters default\/sizes","path":"spec.deployment.spec.replicas"/);
});

test("a listener is programmed from the acknowledgement of its data plane", async (t) => {
  const controller = await startController(t);
  const isProgrammed = (): readonly string[] =>
    controller.now("Gateway").filter((each) => each.startsWith("Programmed"));
  assert.deepEqual(isProgrammed(), ["Programmed False Pending: no data plane is connected"]);
  controller.connect(dataPlane());
  await controller.said("Gateway", "Programmed True Programmed: configuration is sent to data planes");
});
