/**
 * How streams to external processors and endpoint pickers end. Many HTTP/2 servers close a connection on which streams
 * are reset too often, and every request in flight on it fails then.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call } from "../../support/clients/http.ts";
import { documents, GATEWAY, route, routePolicy, startGateway, staticBackend } from "../../support/gateway/gateway.ts";
import { inferencePool, POOL_ROUTE } from "../../support/gateway/inference-pool.ts";
import { HEADERS_ONLY, PROC } from "../../support/gateway/with-ext-proc.ts";
import { contextOf, type ProofContext } from "../../support/proofs/prove.ts";
import { startEcho } from "../../support/servers/echo.ts";
import { startPicker, type PickerAnswer } from "../../support/servers/picker.ts";
import {
  pass,
  startProcServer,
  type ProcOptions,
  type ProcServer,
  type Stream,
} from "../../support/servers/proc-server.ts";

const SHED = { immediate: { status: { code: 429 }, body: Buffer.from("shed") } };

interface Way {
  readonly name: string;
  readonly status: number;
  /** Starts the service. @param port of the server that requests go to */
  readonly start: (context: ProofContext, port: number, options: ProcOptions) => Promise<ProcServer>;
  /** Returns the manifests of a route on which each request is shown to the service. */
  readonly manifests: (port: number, service: number) => string;
}

const picked: Way["manifests"] = (port, service) =>
  documents(inferencePool({ ports: [port], picker: service }), POOL_ROUTE);
const processed: Way["manifests"] = (port, service) =>
  documents(
    staticBackend("web", port),
    staticBackend("proc", service),
    route("web", "web"),
    routePolicy("proc", "web", `  traffic: {extProc: {${PROC}, ${HEADERS_ONLY}}}`),
  );
const pickerThat =
  (choose: (port: number) => PickerAnswer): Way["start"] =>
  (context, port, options) =>
    startPicker(context, () => choose(port), options);

const WAYS: readonly Way[] = [
  {
    name: "an external processor that lets requests pass",
    status: 200,
    start: (context, _port, options) => startProcServer(context, (message) => pass(message), options),
    manifests: processed,
  },
  {
    name: "an external processor that answers by itself",
    status: 429,
    start: (context, _port, options) =>
      startProcServer(context, () => ({ response: { case: "immediateResponse", value: SHED.immediate } }), options),
    manifests: processed,
  },
  {
    name: "a picker that names an endpoint",
    status: 200,
    start: pickerThat((port) => ({ to: `127.0.0.1:${port}` })),
    manifests: picked,
  },
  {
    name: "a picker that names a stranger",
    status: 503,
    start: pickerThat(() => ({ to: "192.0.2.1:1" })),
    manifests: picked,
  },
  { name: "a picker that sheds", status: 429, start: pickerThat(() => SHED), manifests: picked },
];

interface Held {
  readonly send: () => Promise<number>;
  readonly service: ProcServer;
  /** Streams of which the gateway has closed its side, while the service keeps its own open. */
  readonly held: readonly Stream[];
}

/** Sends a request through a service that does not end the stream. */
async function holdStream(context: ProofContext, { status, start, manifests }: Way): Promise<Held> {
  const { port } = await startEcho(context);
  const held: Stream[] = [];
  const first = Promise.withResolvers<void>();
  const service = await start(context, port, {
    onEnd(stream) {
      held.push(stream);
      first.resolve();
    },
  });
  const gateway = await startGateway(context, documents(GATEWAY, manifests(port, service.port)));
  const send = async (): Promise<number> => (await call(gateway.url(), { method: "POST", body: "hello" })).status;
  assert.equal(await send(), status);
  await first.promise;
  return { send, service, held };
}

for (const way of WAYS)
  test(`the stream to ${way.name} is closed when the request is over, and not reset`, async (t) => {
    const { send, service, held } = await holdStream(contextOf(t), way);
    // Both requests share the connection, so the service would read a reset of the first stream before the second one.
    assert.equal(await send(), way.status);
    assert.equal(service.resets(), 0);
    for (const stream of held) stream.end();
  });

test("a stream that its service does not end is reset after a while", async (t) => {
  const [way] = WAYS;
  assert.ok(way !== undefined);
  const { send, held } = await holdStream(contextOf(t), way);
  const [stream] = held;
  await new Promise((resolve) => stream?.on("cancelled", resolve));
  assert.equal(await send(), way.status, "the connection is still there");
});
