/** External servers in the way of gRPC: clients and upstreams that live by trailers and by streams. */
import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { Client, credentials, type ServiceError } from "@grpc/grpc-js";
import {
  Authorization,
  CheckRequestSchema,
  type CheckRequest,
  type CheckResponse,
} from "../../../generated/proto/envoy/service/auth/v3/external_auth_pb.ts";
import { methodDefinition } from "../../../src/lib/grpc.ts";
import { DENY, startAuthServer } from "../../support/servers/auth-server.ts";
import { outline, pass, type Decide } from "../../support/servers/proc-server.ts";
import { PROC, withExtProc, set } from "../../support/gateway/with-ext-proc.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { documents, GATEWAY, route, routePolicy, startGateway, staticBackend } from "../../support/gateway/gateway.ts";

/** Any gRPC service would do as the upstream; this one is at hand. */
const METHOD = methodDefinition(Authorization.method.check);

function ask(context: ProofContext, url: string): Promise<CheckResponse | ServiceError> {
  const client = new Client(new URL(url).host, credentials.createInsecure());
  context.after(() => client.close());
  const message = create(CheckRequestSchema, { attributes: { contextExtensions: { big: "x".repeat(100_000) } } });
  return new Promise((resolve) => {
    client.makeUnaryRequest<CheckRequest, CheckResponse>(
      METHOD.path,
      METHOD.requestSerialize,
      // The method's own schema decodes the answer.
      (bytes) => METHOD.responseDeserialize(bytes) as CheckResponse,
      message,
      (error, answer) => resolve(error ?? (answer as CheckResponse)),
    );
  });
}

prove(
  "GwPolicy spec.traffic.extProc.backendRef.name",
  "a gRPC call streams past a processor both ways, and its status arrives in the trailers that the processor saw",
  async (context) => {
    const upstream = await startAuthServer(context, () => ({ dynamicMetadata: { much: "y".repeat(100_000) } }));
    const decide: Decide = (message) => {
      const { case: name } = message.request;
      if (name !== "responseTrailers") return pass(message, true);
      return { response: { case: name, value: { headerMutation: { setHeaders: [set("x-seen", "yes")] } } } };
    };
    const { url, seen } = await withExtProc(context, `{${PROC}}`, decide, { upstream: upstream.port });
    const answer = await ask(context, url);
    assert.ok("dynamicMetadata" in answer, JSON.stringify(answer));
    assert.equal(String(answer.dynamicMetadata?.["much"]).length, 100_000);
    assert.equal(upstream.seen[0]?.attributes?.contextExtensions["big"]?.length, 100_000);
    const parts = outline(seen).map((part) => part.split(" ", 1)[0]);
    assert.deepEqual(
      [...new Set(parts)],
      ["requestHeaders", "requestBody", "responseHeaders", "responseBody", "responseTrailers"],
    );
  },
);

prove("GwPolicy spec.traffic.extAuth.url", "a gRPC client reads a refusal as a status of gRPC", async (context) => {
  const upstream = await startAuthServer(context);
  const strict = await startAuthServer(context, () => DENY);
  const policy = `  traffic: {extAuth: {url: "http://127.0.0.1:${strict.port}", grpc: {}}}`;
  const manifests = [
    GATEWAY,
    staticBackend("web", upstream.port),
    route("web", "web"),
    routePolicy("auth", "web", policy),
  ];
  const gateway = await startGateway(context, documents(...manifests));
  const answer = await ask(context, gateway.url());
  assert.ok("code" in answer, JSON.stringify(answer));
  assert.deepEqual([answer.code, answer.details], [7, "external authorization failed"]);
  assert.deepEqual([strict.seen.length, upstream.seen.length], [1, 0]);
});
