/** A request that is tried again at another provider: what let it through to the first one does not count for the second. */
import assert from "node:assert/strict";
import { call } from "../../../support/clients/http.ts";
import { startAuthKinds } from "../../../support/gateway/auth-kinds.ts";
import { documents, GATEWAY, route, routePolicy, startGateway } from "../../../support/gateway/gateway.ts";
import { prove } from "../../../support/proofs/prove.ts";
import { startScripted } from "../../../support/servers/scripted-server.ts";

prove(
  [],
  "a retried request is authorised and gets the credential of the provider that it goes to",
  async (context) => {
    const { object, blocks } = await startAuthKinds(context);
    const shown: (readonly [provider: string, authorization: string])[] = [];
    let isBroken = false;
    const start = async (name: string): Promise<number> => {
      const { port } = await startScripted(context, ({ headers }, response) => {
        shown.push([name, headers["authorization"] ?? ""]);
        // The first attempt fails, wherever it goes; later only the provider `one` does.
        const fails = isBroken ? name === "one" : shown.length === 1;
        response.writeHead(fails ? 503 : 200, { "content-type": "application/json" }).end("{}");
      });
      return port;
    };
    const provider = async (name: string, kind: string): Promise<string> =>
      `{name: ${name}, llma: {}, host: 127.0.0.1, port: ${await start(name)}, policies: {auth: ${blocks[kind]?.[0]}, authorization: {action: Require, policy: {matchExpressions: ['"x-${name}" in request.headers']}}}}`;
    const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: web}
spec:
  policies: {ai: {routes: {"*": Passthrough}}}
  ai: {groups: [{providers: [${await provider("one", "oauthTokenExchange")}, ${await provider("two", "cloudA")}]}]}
`;
    const again = routePolicy("again", "web", "  traffic: {retry: {attempts: 1, codes: [503]}}");
    const gateway = await startGateway(context, documents(GATEWAY, object, backend, route("web", "web"), again));
    const ask = async (...names: readonly string[]): Promise<number> => {
      const marks = Object.fromEntries(names.map((name) => [`x-${name}`, "1"]));
      const headers = { authorization: "Bearer of-the-client", "content-type": "application/json", ...marks };
      return (await call(`${gateway.url()}/v1/any`, { method: "POST", headers, body: "{}" })).status;
    };
    assert.equal(await ask("one", "two"), 200);
    const credentials = Object.fromEntries(shown);
    assert.equal(shown.length, 2);
    assert.match(credentials["one"] ?? "", /^Bearer minted-1$/);
    assert.match(credentials["two"] ?? "", /^AWS4-HMAC-SHA256 Credential=AKID\//);

    isBroken = true;
    shown.length = 0;
    assert.equal(await ask("one"), 403, "the second provider refuses, whether it is asked first or again");
    assert.ok(shown.every(([name]) => name === "one"));
  },
);
