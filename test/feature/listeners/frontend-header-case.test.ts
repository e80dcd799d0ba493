/** `frontend.http.http1HeaderCase` of a GwPolicy: how names of header fields are written on both sides. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { rawClient } from "../../support/gateway/data-plane.ts";
import {
  documents,
  GATEWAY,
  route,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { startHttp2Upstream } from "../../support/servers/http2-upstream.ts";
import { connectHttp2 } from "../../support/clients/http2.ts";
import { gatewayRef, policy, routeRef } from "../../support/proofs/policy-places.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { startRawUpstream } from "../../support/servers/upstream.ts";

const FIELD = "GwPolicy spec.frontend.http.http1HeaderCase";
const PRESERVE = policy("case", { refs: gatewayRef(), says: "frontend: {http: {http1HeaderCase: Preserve}}" });

interface Served {
  readonly gateway: TestGateway;
  readonly port: number;
  /** Heads of the requests that reached the upstream. */
  readonly heads: readonly string[];
}

/** @param answer what the upstream says to each head */
async function serve(context: ProofContext, answer: string, ...policies: readonly string[]): Promise<Served> {
  const heads: string[] = [];
  const upstream = await startRawUpstream((socket) => {
    let text = "";
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
      const end = text.indexOf("\r\n\r\n");
      if (end < 0) return;
      heads.push(text.slice(0, end));
      text = "";
      socket.write(answer);
    });
  });
  context.after(() => upstream.close());
  const rest = [GATEWAY, staticBackend("web", upstream.port), route("web", "web"), ...policies];
  const gateway = await startGateway(context, documents(...rest));
  assert.deepEqual(gateway.problems(), []);
  return { gateway, port: Number(new URL(gateway.url()).port), heads };
}

/** The head of the answer. */
async function ask(context: ProofContext, port: number, bytes: string): Promise<string> {
  const client = rawClient(port, bytes);
  context.after(() => void client.socket.destroy());
  const [head] = await client.until(/^[^]*?\r\n\r\n/);
  return head;
}

const REQUEST =
  "POST / HTTP/1.1\r\nHost: a.test\r\nX-MiXed: 1\r\nplain: 2\r\nCONTENT-Length: 2\r\nX-Forwarded-For: 192.0.2.1\r\n\r\nhi";
const ANSWER = "HTTP/1.1 200 OK\r\nX-Answer: 1\r\nplain: 2\r\nContent-LENGTH: 2\r\nSet-Cookie: a=1\r\n\r\nhi";

prove(FIELD, "names of fields leave as they came, both ways", async (context) => {
  const { port, heads } = await serve(context, ANSWER, PRESERVE);
  const answer = await ask(context, port, REQUEST);
  for (const line of [
    "Host: a.test",
    "X-MiXed: 1",
    "plain: 2",
    "CONTENT-Length: 2",
    "X-Forwarded-For: 192.0.2.1, 127.0.0.1",
  ])
    assert.ok(heads[0]?.split("\r\n").includes(line), `${line} is not in ${heads[0]}`);
  for (const line of ["X-Answer: 1", "plain: 2", "Content-LENGTH: 2", "Set-Cookie: a=1"])
    assert.ok(answer.split("\r\n").includes(line), `${line} is not in ${answer}`);
});

const CHUNKED_REQUEST =
  "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Check-SUM: 1\r\nCookie: no\r\n\r\n";
const CHUNKED_ANSWER =
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Answer-SUM: 1\r\nSet-Cookie: no\r\n\r\n";

for (const [how, policies, request, answer] of [
  ["as they came", [PRESERVE], "X-Check-SUM: 1", "X-Answer-SUM: 1"],
  ["in lower case without the setting", [], "x-check-sum: 1", "x-answer-sum: 1"],
] as const)
  prove([], `fields behind a body leave ${how}`, async (context) => {
    let text = "";
    const upstream = await startRawUpstream((socket) => {
      socket.on("data", (chunk: Buffer) => {
        text += chunk.toString("latin1");
        if (text.endsWith("\r\n\r\n") && text.includes("\r\n0\r\n")) socket.write(CHUNKED_ANSWER);
      });
    });
    context.after(() => upstream.close());
    const rest = [GATEWAY, staticBackend("web", upstream.port), route("web", "web"), ...policies];
    const gateway = await startGateway(context, documents(...rest));
    const client = rawClient(Number(new URL(gateway.url()).port), CHUNKED_REQUEST);
    context.after(() => void client.socket.destroy());
    const [, trailers] = await client.until(/\r\n0\r\n([^]*?)\r\n\r\n/);
    assert.equal(trailers, answer);
    assert.equal(/\r\n0\r\n([^]*?)\r\n\r\n/.exec(text)?.[1], request);
  });

prove([], "without the setting names leave in lower case", async (context) => {
  const { port, heads } = await serve(context, ANSWER);
  const answer = await ask(context, port, REQUEST);
  assert.match(heads[0] ?? "", /\r\nhost: a\.test\r\n[^]*x-mixed: 1\r\n/);
  assert.match(answer, /\r\nx-answer: 1\r\n[^]*set-cookie: a=1\r\n/);
});

prove([], "what a policy removes or replaces is found in any spelling", async (context) => {
  const edits =
    "traffic: {headerModifiers: {request: {remove: [x-mixed], set: [{name: PLAIN, value: new}]}, response: {remove: [x-answer]}}}";
  const { port, heads } = await serve(
    context,
    ANSWER,
    PRESERVE,
    policy("edit", { refs: routeRef("web"), says: edits }),
  );
  const answer = await ask(context, port, REQUEST);
  assert.doesNotMatch(heads[0] ?? "", /x-mixed/i);
  assert.match(heads[0] ?? "", /\r\nplain: new/i);
  assert.doesNotMatch(answer, /x-answer/i);
});

prove([], "an upgrade keeps its names too", async (context) => {
  const agree = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: bytes\r\nX-Answer: 1\r\n\r\n";
  const { port, heads } = await serve(context, agree, PRESERVE);
  const upgrade = "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: bytes\r\n\r\n";
  assert.match(await ask(context, port, upgrade), /\r\nX-Answer: 1\r\n/);
  assert.match(heads[0] ?? "", /\r\nConnection: upgrade\r\nUpgrade: bytes/);
});

prove([], "towards HTTP/2 names are lower-case, on either side", async (context) => {
  const agree = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: bytes\r\nX-Answer: 1\r\n\r\n";
  const { gateway, heads } = await serve(context, agree, PRESERVE);
  const session = await connectHttp2(gateway.url());
  context.after(() => void session.destroy());
  await new Promise((resolve) => session.ping(resolve));
  const extended = {
    ":method": "CONNECT",
    ":protocol": "bytes",
    ":scheme": "http",
    ":path": "/",
    ":authority": "a.test",
  };
  const stream = session.request({ ...extended, "X-Mixed": "1" }, { endStream: false });
  const [headers] = (await once(stream, "response")) as [Record<string, string>];
  assert.deepEqual([headers[":status"], headers["x-answer"]], [200, "1"]);
  assert.match(heads[0] ?? "", /\r\nx-mixed: 1/);
  stream.close();
  const seen: string[] = [];
  const upstream = await startHttp2Upstream(context, (incoming, fields) => {
    seen.push(...Object.keys(fields));
    incoming.on("trailers", (trailers: object) => seen.push(...Object.keys(trailers)));
    incoming.resume().on("end", () => {
      incoming.respond({ ":status": 200, "x-answer": "1" });
      incoming.end();
    });
  });
  const rest = [GATEWAY, staticBackend("web", upstream.port), route("web", "web"), PRESERVE];
  const grpc = await startGateway(context, documents(...rest));
  const fields = "Host: a.test\r\nContent-Type: application/grpc\r\nX-MiXed: 1\r\nTransfer-Encoding: chunked";
  const port = Number(new URL(grpc.url()).port);
  const answer = await ask(context, port, `POST / HTTP/1.1\r\n${fields}\r\n\r\n0\r\nX-Check-SUM: 1\r\n\r\n`);
  assert.match(answer, /^HTTP\/1\.1 200 [^]*x-answer: 1\r\n/);
  for (const name of ["x-mixed", "content-type", "x-check-sum"]) assert.ok(seen.includes(name), seen.join());
});
