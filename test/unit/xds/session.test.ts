import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  NodeSchema,
  type DeltaDiscoveryRequest,
  type DeltaDiscoveryResponse,
  type Resource as WireResource,
} from "../../../generated/proto/envoy/service/discovery/v3/discovery_pb.ts";
import type { Resource, ResourceType } from "../../../src/ir/resource.ts";
import { ClientSession } from "../../../src/xds/client/session.ts";
import { Store } from "../../../src/xds/client/store.ts";
import { SEND_ORDER, encodeResource, typeUrlOf } from "../../../src/xds/codec.ts";
import { decodeNack } from "../../../src/xds/nack.ts";
import { DiscoveryRequestError, Session } from "../../../src/xds/server/session.ts";
import { backend, dataPlane, quiet, route, watch, type DataPlane } from "./resources.ts";

function response(type: ResourceType, nonce: string, resources: readonly WireResource[] = []): DeltaDiscoveryResponse {
  return create(DeltaDiscoveryResponseSchema, { typeUrl: typeUrlOf(type), nonce, resources: [...resources] });
}

function clientSession(plane: DataPlane): {
  session: ClientSession;
  sent: DeltaDiscoveryRequest[];
  until: (condition: () => boolean) => Promise<void>;
} {
  const sent: DeltaDiscoveryRequest[] = [];
  const watched = watch();
  const session = new ClientSession({
    node: create(NodeSchema, { id: "pod" }),
    store: new Store(),
    log: quiet,
    apply: plane.apply,
    onState: () => undefined,
    send(request) {
      sent.push(request);
      watched.changed();
    },
  });
  session.start();
  return { session, sent, until: watched.until };
}

test("the client names itself once and subscribes to every type", () => {
  const { sent } = clientSession(dataPlane());
  assert.deepEqual(
    sent.map(({ typeUrl }) => typeUrl),
    SEND_ORDER.map(typeUrlOf),
  );
  assert.deepEqual(
    sent.map(({ node }) => node?.id),
    ["pod", ...SEND_ORDER.slice(1).map(() => undefined)],
  );
});

test("nothing is applied before every type has answered", async () => {
  const plane = dataPlane();
  const { session, sent, until } = clientSession(plane);
  for (const type of SEND_ORDER.slice(1)) session.receive(response(type, type));
  session.receive(response("HttpRoute", "again", [encodeResource(route("r"))]));
  assert.equal(plane.updates.length, 0);
  assert.equal(sent.length, SEND_ORDER.length, "and nothing is acknowledged");
  session.receive(response("Backend", "last", [encodeResource(backend("b"))]));
  await until(() => sent.length === 2 * SEND_ORDER.length + 1);
  assert.equal(plane.updates.length, 1);
  assert.deepEqual([...plane.state.keys()].sort(), ["Backend backend/a/b", "HttpRoute httproute/a/r"]);
});

test("a resource that cannot be decoded is refused by name, the others of its response are applied", async () => {
  const plane = dataPlane();
  const { session, sent, until } = clientSession(plane);
  const broken: Record<string, WireResource> = {
    "httproute/a/garbage": { ...encodeResource(route("garbage")) },
    "httproute/a/renamed": { ...encodeResource(route("other")), name: "httproute/a/renamed" },
    "httproute/a/mistyped": { ...encodeResource(backend("x")), name: "httproute/a/mistyped" },
  };
  const garbage = broken["httproute/a/garbage"];
  assert.ok(garbage?.resource);
  garbage.resource = { ...garbage.resource, value: new Uint8Array([0xff, 0xff, 0xff]) };
  for (const type of SEND_ORDER) {
    const resources = type === "HttpRoute" ? [...Object.values(broken), encodeResource(route("sound"))] : [];
    session.receive(response(type, type, resources));
  }
  await until(() => sent.some(({ responseNonce }) => responseNonce === "HttpRoute"));
  assert.deepEqual([...plane.state.keys()], ["HttpRoute httproute/a/sound"]);
  const nack = sent.find(({ responseNonce }) => responseNonce === "HttpRoute");
  const refused = decodeNack(nack?.errorDetail?.message ?? "", "HttpRoute", Object.keys(broken));
  assert.deepEqual(refused.map(({ key }) => key).sort(), Object.keys(broken).sort());
  assert.ok(refused.every(({ reason }) => reason !== ""));
});

test("an answer is read by nonce, and a refusal without names refuses all that was sent with it", async () => {
  const state: Resource[] = [route("one"), route("two")];
  const { session, responses, acked, nacked, until } = serverSession(state);
  session.request(create(DeltaDiscoveryRequestSchema, { typeUrl: typeUrlOf("HttpRoute") }));
  await until(() => responses.length === 1);
  const nonce = responses[0]?.nonce ?? "";
  session.request(answer(`${nonce}0`));
  assert.deepEqual([acked, nacked], [[], []], "an unknown nonce says nothing");
  session.request(answer(nonce, "something else"));
  assert.deepEqual(nacked, [
    { type: "HttpRoute", key: "httproute/a/one", reason: "something else" },
    { type: "HttpRoute", key: "httproute/a/two", reason: "something else" },
  ]);
  session.request(answer(nonce));
  assert.deepEqual(acked, [], "a response is answered once");
});

test("a full stream gets the newest state when it drains, not a backlog", async () => {
  const { session, responses, until, setFull } = serverSession([]);
  setFull(true);
  session.request(create(DeltaDiscoveryRequestSchema, { typeUrl: typeUrlOf("HttpRoute") }));
  await until(() => responses.length === 1);
  for (const prefix of ["/1", "/2", "/3"]) {
    session.update({ set: [route("r", prefix)], removed: [] });
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(responses.length, 1);
  setFull(false);
  session.drained();
  await until(() => responses.length === 2);
  assert.deepEqual(
    responses[1]?.resources.map(({ version }) => version),
    [route("r", "/3").version],
  );
});

test("single resources cannot be subscribed to, and an unknown type is answered with nothing", () => {
  const { session, responses } = serverSession([route("r")]);
  assert.throws(
    () =>
      session.request(
        create(DeltaDiscoveryRequestSchema, { typeUrl: typeUrlOf("HttpRoute"), resourceNamesSubscribe: ["r"] }),
      ),
    DiscoveryRequestError,
  );
  const typeUrl = "type.googleapis.com/gwproxy.config.v1.OfTheFuture";
  session.request(create(DeltaDiscoveryRequestSchema, { typeUrl }));
  assert.deepEqual(
    responses.map((sent) => [sent.typeUrl, sent.resources.length]),
    [[typeUrl, 0]],
  );
});

function answer(responseNonce: string, message?: string): DeltaDiscoveryRequest {
  return create(DeltaDiscoveryRequestSchema, {
    typeUrl: typeUrlOf("HttpRoute"),
    responseNonce,
    ...(message === undefined ? {} : { errorDetail: { code: 3, message } }),
  });
}

function serverSession(state: readonly Resource[]): {
  session: Session;
  responses: DeltaDiscoveryResponse[];
  acked: unknown[];
  nacked: unknown[];
  until: (condition: () => boolean) => Promise<void>;
  setFull: (value: boolean) => void;
} {
  const responses: DeltaDiscoveryResponse[] = [];
  const [acked, nacked]: [unknown[], unknown[]] = [[], []];
  const watched = watch();
  let full = false;
  const session = new Session(
    {
      send(sent) {
        responses.push(sent);
        watched.changed();
        return !full;
      },
      acked: (resources) => acked.push(...resources),
      nacked: (refused) => nacked.push(...refused),
    },
    quiet,
  );
  session.update({ set: state, removed: [] });
  return { session, responses, acked, nacked, until: watched.until, setFull: (value) => (full = value) };
}
