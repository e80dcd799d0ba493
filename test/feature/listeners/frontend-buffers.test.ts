/** `frontend.http.maxBufferSize` of a GwPolicy: the limit of everything that holds a body and has no limit of its own. */
import assert from "node:assert/strict";
import { startEcho } from "../../support/servers/echo.ts";
import { documents, route, startGateway, staticBackend, type TestGateway } from "../../support/gateway/gateway.ts";
import { call, type Answer } from "../../support/clients/http.ts";
import { GROUP, gatewayRef, policy, routeRef, TWO_LISTENERS } from "../../support/proofs/policy-places.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";

const FIELD = "GwPolicy spec.frontend.http.maxBufferSize";
const LIMIT = policy("limit", { refs: gatewayRef(), says: "frontend: {http: {maxBufferSize: 1Ki}}" });
/** Of TWO_LISTENERS. */
const SECOND_PORT = 8081;

/** @param traffic flow YAML of `spec.traffic` on the route `web` */
async function serve(context: ProofContext, traffic: string, ...policies: readonly string[]): Promise<TestGateway> {
  const echo = await startEcho(context);
  const own = policy("own", { refs: routeRef("web"), says: `traffic: {${traffic}}` });
  const rest = [TWO_LISTENERS, staticBackend("web", echo.port), route("web", "web"), own, ...policies];
  const gateway = await startGateway(context, documents(...rest));
  assert.deepEqual(gateway.problems(), []);
  return gateway;
}

function post(gateway: TestGateway, bytes: number, port = 8080): Promise<Answer> {
  return call(gateway.url(port), { method: "POST", body: "x".repeat(bytes) });
}

prove(FIELD, "a buffer without a limit of its own takes that of the Gateway, both ways", async (context) => {
  const gateway = await serve(context, "buffer: {request: {}}", LIMIT);
  assert.equal((await post(gateway, 1024)).status, 200);
  const beyond = await post(gateway, 1025);
  assert.deepEqual([beyond.status, beyond.body], [413, ""]);
  const answers = await serve(context, "buffer: {response: {}}", LIMIT);
  assert.equal((await post(answers, 10)).status, 200);
  // The answer repeats the request and says more.
  assert.deepEqual([(await post(answers, 1024)).status, (await post(answers, 1024)).body], [502, ""]);
});

prove(FIELD, "expressions see no body that is longer", async (context) => {
  const sees = `set: [{name: x-sees, value: 'string(size(request.body))'}]`;
  const gateway = await serve(context, `transformation: {response: {${sees}}}`, LIMIT);
  assert.equal((await post(gateway, 1024)).headers["x-sees"], "1024");
  const beyond = await post(gateway, 1025);
  assert.deepEqual([beyond.status, beyond.headers["x-sees"]], [200, undefined]);
});

prove([], "an answer that is longer is nothing to expressions, and passes all the same", async (context) => {
  const sees = `set: [{name: x-sees, value: 'string(size(response.body) > 0)'}]`;
  const gateway = await serve(context, `transformation: {response: {${sees}}}`, LIMIT);
  assert.equal((await post(gateway, 10)).headers["x-sees"], "true");
  const beyond = await post(gateway, 2000);
  assert.deepEqual([beyond.status, beyond.headers["x-sees"]], [200, undefined]);
  assert.match(beyond.body, /x{2000}/);
});

prove(FIELD, "a request for a model that is longer is refused, and so is the answer", async (context) => {
  const provider = await startEcho(context);
  const ai = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec:
  ai: {provider: {llma: {}, host: 127.0.0.1, port: ${provider.port}}}
`;
  const gateway = await startGateway(context, documents(TWO_LISTENERS, ai, route("ai", "ai"), LIMIT));
  const ask = (bytes: number): Promise<Answer> => {
    const messages = [{ role: "user", content: "x".repeat(bytes) }];
    const headers = { "content-type": "application/json" };
    const url = `${gateway.url()}/v1/chat/completions`;
    return call(url, { method: "POST", headers, body: JSON.stringify({ model: "m", messages }) });
  };
  assert.equal((await ask(100)).status, 200);
  assert.equal((await ask(1024)).status, 413);
  assert.equal(provider.seen.length, 1);
  // Within the limit as a request; what the provider answers repeats it, with its header lines.
  assert.equal((await ask(900)).status, 502);
});

prove([], "a buffer with a limit of its own has that, above and below", async (context) => {
  const wider = await serve(context, "buffer: {request: {maxBytes: 2Ki}}", LIMIT);
  assert.equal((await post(wider, 2048)).status, 200);
  assert.equal((await post(wider, 2049)).status, 413);
});

prove([], "expressions see an answer up to the limit of the buffer around it", async (context) => {
  const sees = `set: [{name: x-sees, value: 'string(size(response.body) > 0)'}]`;
  const traffic = `buffer: {response: {maxBytes: 4Ki}}, transformation: {response: {${sees}}}`;
  const gateway = await serve(context, traffic, LIMIT);
  assert.equal((await post(gateway, 2048)).headers["x-sees"], "true");
});

prove([], "each port has its own limit, and a change holds for the next request", async (context) => {
  const port = `{${GROUP}, kind: Gateway, name: gw, port: ${SECOND_PORT}}`;
  const one = policy("one", { refs: port, says: "frontend: {http: {maxBufferSize: 512}}" });
  const gateway = await serve(context, "buffer: {request: {}}", LIMIT, one);
  assert.equal((await post(gateway, 1024)).status, 200);
  assert.equal((await post(gateway, 1024, SECOND_PORT)).status, 413);
  assert.equal((await post(gateway, 512, SECOND_PORT)).status, 200);
});
