/** Starts a gateway with a route through an external processor to an echo. */
import assert from "node:assert/strict";
import type { HeaderValueOptionSchema } from "../../../generated/proto/envoy/config/core/v3/base_pb.ts";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { startEcho } from "../servers/echo.ts";
import { routePolicy, startWeb, staticBackend, type TestGateway } from "./gateway.ts";
import { startProcServer, type Decide, type ProcServer } from "../servers/proc-server.ts";
import type { ProofContext } from "../proofs/prove.ts";

export interface Setup extends ProcServer {
  readonly gateway: TestGateway;
  readonly url: string;
}

interface Extra {
  readonly more?: readonly string[];
  /** Port of an upstream that replaces the echo. */
  readonly upstream?: number;
}

/**
 * Starts a gateway with a route `web` to an echo through the processor of the GwBackend `proc`.
 * @param policy flow YAML
 */
export async function withExtProc(
  context: ProofContext,
  policy: string,
  decide: Decide,
  { more = [], upstream }: Extra = {},
): Promise<Setup> {
  const server = await startProcServer(context, decide);
  const port = upstream ?? (await startEcho(context)).port;
  const gateway = await startWeb(
    context,
    port,
    staticBackend("proc", server.port),
    routePolicy("proc", "web", `  traffic: {extProc: ${policy}}`),
    ...more,
  );
  assert.deepEqual(
    gateway.problems().filter(({ severity }) => severity === "error"),
    [],
  );
  return { ...server, gateway, url: gateway.url() };
}

export const PROC: string = "backendRef: {group: gwproxy.dev, kind: GwBackend, name: proc}";
/** Mode in which the processor does not receive bodies. */
export const HEADERS_ONLY: string = "processingOptions: {requestBodyMode: None, responseBodyMode: None}";
export const set = (key: string, value: string): MessageInitShape<typeof HeaderValueOptionSchema> => ({
  header: { key, rawValue: Buffer.from(value) },
});
