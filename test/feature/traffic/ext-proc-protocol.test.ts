/** traffic.extProc through real sockets: trailers, answers of the processor itself, overrides, metadata, failures. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import {
  ProcessingMode_BodySendMode as SendBody,
  ProcessingMode_HeaderSendMode as Send,
} from "../../../generated/proto/envoy/extensions/filters/http/ext_proc/v3/processing_mode_pb.ts";
import { echoed, startEcho } from "../../support/servers/echo.ts";
import { proveForms } from "../../support/proofs/forms.ts";
import { documents, GATEWAY, route, startGateway, staticBackend } from "../../support/gateway/gateway.ts";
import { deadPort, startSocket } from "../../support/servers/grpc.ts";
import { call } from "../../support/clients/http.ts";
import { outline, pass, startProcServer, type Decide, type ProcAnswer } from "../../support/servers/proc-server.ts";
import { HEADERS_ONLY, PROC, withExtProc, set } from "../../support/gateway/with-ext-proc.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";

interface Trailed {
  readonly status: number;
  readonly body: string;
  /** Trailers that the upstream saw. */
  readonly sent: IncomingHttpHeaders;
  /** Trailers of the answer. */
  readonly received: IncomingHttpHeaders;
}

/** An upstream that answers with the trailers it was sent, and with trailers of its own. */
async function startTrailing(context: ProofContext): Promise<number> {
  const server = createServer((incoming, response) => {
    incoming.resume();
    incoming.on("end", () => {
      response.writeHead(200, { trailer: "x-sum" });
      response.write(JSON.stringify(incoming.trailers));
      response.addTrailers({ "x-sum": "theirs" });
      response.end();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  // A TCP server that listens on a port has an address of this form.
  return (server.address() as AddressInfo).port;
}

async function callWithTrailers(url: string): Promise<Trailed> {
  const outgoing = request(url, { method: "POST", headers: { trailer: "x-check", "transfer-encoding": "chunked" } });
  outgoing.write("hello");
  outgoing.addTrailers({ "x-check": "ours" });
  outgoing.end();
  const [response] = (await once(outgoing, "response")) as [IncomingMessage]; // as declared
  let body = "";
  for await (const chunk of response.setEncoding("utf8")) body += chunk as string;
  return {
    status: response.statusCode ?? 0,
    body,
    sent: response.statusCode === 200 ? (JSON.parse(body) as IncomingHttpHeaders) : {},
    received: response.trailers,
  };
}

const markTrailers =
  (streamed: boolean): Decide =>
  (message) => {
    const { case: name } = message.request;
    if (name !== "requestTrailers" && name !== "responseTrailers") return pass(message, streamed);
    return { response: { case: name, value: { headerMutation: { setHeaders: [set("x-marked", name)] } } } };
  };

for (const mode of ["None", "Buffered", "BufferedPartial", "FullDuplexStreamed"])
  proveForms(
    "extProc",
    ["processingOptions.requestTrailerMode", "processingOptions.responseTrailerMode"],
    `trailers are shown and edited, and pass unseen when they are skipped (bodies: ${mode})`,
    async (context, form) => {
      const bodies = `requestBodyMode: ${mode}, responseBodyMode: ${mode}`;
      const upstream = await startTrailing(context);
      const decide = markTrailers(mode === "FullDuplexStreamed");
      const shown = await withExtProc(context, form(`{${PROC}, processingOptions: {${bodies}}}`), decide, { upstream });
      const edited = await callWithTrailers(shown.url);
      assert.deepEqual(edited.sent, { "x-check": "ours", "x-marked": "requestTrailers" });
      assert.deepEqual({ ...edited.received }, { "x-sum": "theirs", "x-marked": "responseTrailers" });
      const skips = `processingOptions: {${bodies}, requestTrailerMode: Skip, responseTrailerMode: Skip}`;
      const hidden = await withExtProc(context, form(`{${PROC}, ${skips}}`), decide, { upstream });
      const unseen = await callWithTrailers(hidden.url);
      assert.deepEqual(unseen.sent, { "x-check": "ours" });
      assert.deepEqual({ ...unseen.received }, { "x-sum": "theirs" });
      assert.ok(!outline(hidden.seen).some((part) => part.endsWith("Trailers")));
    },
  );

const immediate = (code: number, body: string): ProcAnswer => ({
  response: {
    case: "immediateResponse",
    value: { status: { code }, body: Buffer.from(body), headers: { setHeaders: [set("x-by", "processor")] } },
  },
});

prove(
  "GwPolicy spec.traffic.extProc.backendRef.name",
  "the processor may answer at once in every phase, and then nothing else is asked",
  async (context) => {
    for (const phase of ["requestHeaders", "requestBody", "responseHeaders", "responseBody"]) {
      const options = "processingOptions: {requestBodyMode: Buffered, responseBodyMode: Buffered}";
      const { url, seen } = await withExtProc(context, `{${PROC}, ${options}}`, (message) =>
        message.request.case === phase ? immediate(418, phase) : pass(message),
      );
      const answer = await call(url, { method: "POST", body: "hello" });
      assert.deepEqual([answer.status, answer.body, answer.headers["x-by"]], [418, phase, "processor"]);
      assert.equal(seen.at(-1)?.request.case, phase);
    }
  },
);

prove(
  "GwPolicy spec.traffic.extProc.backendRef.name",
  "an answer of the processor in the middle of a streamed request body ends the request",
  async (context) => {
    const { url } = await withExtProc(context, `{${PROC}}`, (message) => {
      const { request: part } = message;
      if (part.case === "requestBody" && part.value.endOfStream) return immediate(422, "bad body");
      return pass(message, true);
    });
    const answer = await call(url, { method: "POST", body: "hello", headers: { "transfer-encoding": "chunked" } });
    assert.deepEqual([answer.status, answer.body], [422, "bad body"]);
  },
);

proveForms(
  "extProc",
  ["processingOptions.allowModeOverride"],
  "the processor changes what it sees of one request, where that is allowed",
  async (context, form) => {
    const wanted = {
      requestBodyMode: SendBody.BUFFERED,
      responseHeaderMode: Send.SKIP,
      responseBodyMode: SendBody.NONE,
      responseTrailerMode: Send.SKIP,
    };
    const decide: Decide = (message) =>
      message.request.case === "requestHeaders"
        ? { response: { case: "requestHeaders", value: {} }, modeOverride: wanted }
        : pass(message);
    const options = "requestBodyMode: None, responseBodyMode: None";
    const allowed = await withExtProc(
      context,
      form(`{${PROC}, processingOptions: {${options}, allowModeOverride: true}}`),
      decide,
    );
    assert.equal((await call(allowed.url, { method: "POST", body: "hello" })).status, 200);
    assert.deepEqual(outline(allowed.seen), ["requestHeaders", "requestBody hello."]);
    const ignored = await withExtProc(context, form(`{${PROC}, processingOptions: {${options}}}`), decide);
    assert.equal((await call(ignored.url, { method: "POST", body: "hello" })).status, 200);
    assert.deepEqual(outline(ignored.seen), ["requestHeaders", "responseHeaders"]);
  },
);

proveForms(
  "extProc",
  ["metadataContext", "requestAttributes", "responseAttributes"],
  "metadata and attributes go with the first message of each phase; what fails is left out",
  async (context, form) => {
    const metadata = `metadataContext: {mine: {path: request.path, bad: 'request.headers["none"]'}}`;
    const attributes = `requestAttributes: {method: request.method}, responseAttributes: {code: response.code}`;
    const { url, seen } = await withExtProc(
      context,
      form(`{${PROC}, ${HEADERS_ONLY}, ${metadata}, ${attributes}}`),
      (m) => pass(m),
    );
    assert.equal((await call(`${url}/p`)).status, 200);
    const [first, second] = seen;
    assert.deepEqual(first?.metadataContext?.filterMetadata, { mine: { path: "/p" } });
    assert.deepEqual(first?.attributes, { "envoy.filters.http.ext_proc": { method: "GET" } });
    assert.deepEqual(second?.attributes, { "envoy.filters.http.ext_proc": { code: 200 } });
  },
);

const TROUBLES: Readonly<Record<string, (context: ProofContext) => Promise<number>>> = {
  down: deadPort,
  slow: async (context) => (await startProcServer(context, () => undefined)).port,
  "half-open": (context) => startSocket(context),
  garbage: (context) => startSocket(context, (socket) => socket.write("no frame of HTTP/2 at all\r\n\r\n".repeat(4))),
  "out of place": async (context) =>
    (await startProcServer(context, () => ({ response: { case: "responseTrailers", value: {} } }))).port,
  mute: async (context) => (await startProcServer(context, () => ({}))).port,
};

proveForms(
  "extProc",
  ["failureMode"],
  "a processor that is down, slow, half-open or talks nonsense gives 500, and lets pass when it fails open",
  async (context, form) => {
    await Promise.all(
      Object.entries(TROUBLES).map(async ([trouble, start]) => {
        const url = `url: "http://127.0.0.1:${await start(context)}"`;
        const closed = await withExtProc(context, form(`{${url}, failureMode: FailClosed}`), () => undefined);
        const open = await withExtProc(context, form(`{${url}, failureMode: FailOpen}`), () => undefined);
        const answers = await Promise.all([closed, open].map((setup) => call(setup.url)));
        assert.deepEqual(
          answers.map(({ status }) => status),
          [500, 200],
          trouble,
        );
        assert.equal(answers[0]?.body, "ext_proc failed");
      }),
    );
  },
);

prove(
  "GwPolicy spec.traffic.extProc.failureMode",
  "it fails open while no byte of a body was handed over, and never after that",
  async (context) => {
    const post = { method: "POST", body: "hello" };
    const down = await withExtProc(
      context,
      `{url: "http://127.0.0.1:${await deadPort()}", failureMode: FailOpen}`,
      () => undefined,
    );
    const passed = await call(down.url, post);
    assert.equal(passed.status, 200);
    assert.equal(echoed(passed.body).body, "hello");
    for (const mode of ["Buffered", "BufferedPartial", "FullDuplexStreamed"]) {
      const options = `processingOptions: {requestBodyMode: ${mode}, responseBodyMode: None}`;
      const breaks: Decide = (message, stream) => {
        if (message.request.case !== "requestBody") return pass(message);
        stream.emit("error", { code: 13, details: "broken" });
        return undefined;
      };
      const upstream = await startTrailing(context);
      const late = await withExtProc(context, `{${PROC}, failureMode: FailOpen, ${options}}`, breaks, { upstream });
      const answer = await call(late.url, post);
      assert.ok(answer.status >= 500, `${mode}: ${answer.status}`);
    }
    const missing = PROC.replace("name: proc", "name: nobody");
    const unknown = await withExtProc(context, `{${missing}, failureMode: FailOpen}`, () => undefined);
    assert.equal((await call(unknown.url)).status, 500);
    assert.equal(unknown.gateway.translator.diagnostics()[0]?.path, "spec.traffic.extProc.backendRef");
  },
);

prove(
  "GwPolicy spec.traffic.extProc.backendRef.name",
  "a processor that closes the stream in good order has nothing more to say",
  async (context) => {
    const { url, seen } = await withExtProc(context, `{${PROC}, ${HEADERS_ONLY}}`, (message, stream) => {
      stream.end();
      return message.request.case === "responseHeaders" ? pass(message) : undefined;
    });
    assert.equal((await call(url, { method: "POST", body: "x" })).status, 200);
    assert.deepEqual(outline(seen), ["requestHeaders"]);
  },
);

prove(
  ["GwPolicy spec.traffic.extProc.conditional[].condition", "GwPolicy spec.traffic.extProc.conditional[].policy.url"],
  "the first entry whose condition holds names the processor, for the answer too",
  async (context) => {
    const other = await startProcServer(context, (message) => pass(message));
    const first = `{condition: 'request.path == "/first"', policy: {url: "http://127.0.0.1:${other.port}", ${HEADERS_ONLY}}}`;
    const rest = `{condition: 'request.path.startsWith("/s")', policy: {${PROC}, ${HEADERS_ONLY}}}`;
    const { url, seen } = await withExtProc(context, `{conditional: [${first}, ${rest}]}`, (message) => pass(message));
    for (const path of ["/first", "/second", "/else"]) assert.equal((await call(url + path)).status, 200);
    assert.deepEqual([other.seen.length, seen.length], [2, 2]);
  },
);

const service = (port: number) => `
apiVersion: v1
kind: Service
metadata: {name: worker, namespace: infra}
spec: {ports: [{name: grpc, port: 9000}, {name: other, port: 9001}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: worker-1, namespace: infra, labels: {kubernetes.io/service-name: worker}}
addressType: IPv4
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
ports: [{name: grpc, port: ${port}}, {name: other, port: 1}]
`;

proveForms(
  "extProc",
  ["backendRef.namespace", "backendRef.port"],
  "a Service of another namespace processes",
  async (context, form) => {
    const server = await startProcServer(context, () => immediate(418, "seen"));
    const ref = "backendRef: {name: worker, namespace: infra, port: 9000}";
    const { url } = await withExtProc(context, form(`{${ref}}`), () => undefined, { more: [service(server.port)] });
    assert.equal((await call(url)).status, 418);
  },
);

prove(
  ["GwPolicy spec.traffic.phase", "GwPolicy spec.traffic.extProc.url"],
  "before routing a processor can choose the route",
  async (context) => {
    const server = await startProcServer(context, (message) => {
      const { case: name } = message.request;
      if (name !== "requestHeaders") return pass(message);
      return {
        response: { case: name, value: { response: { headerMutation: { setHeaders: [set(":path", "/app/moved")] } } } },
      };
    });
    const early = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwPolicy
metadata: {name: early}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]
  traffic: {phase: PreRouting, extProc: {url: "http://127.0.0.1:${server.port}", ${HEADERS_ONLY}}}
`;
    const echo = await startEcho(context);
    const gateway = await startGateway(
      context,
      documents(GATEWAY, staticBackend("web", echo.port), route("web", "web", "/app"), early),
    );
    const answer = await call(`${gateway.url()}/elsewhere`);
    assert.equal(answer.status, 200);
    assert.equal(echoed(answer.body).url, "/app/moved");
    assert.deepEqual(outline(server.seen), ["requestHeaders", "responseHeaders"]);
  },
);
