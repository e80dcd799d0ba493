/** An external authorization server (Envoy ext_authz v3 over gRPC) whose verdicts a test decides. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { sendUnaryData, ServerUnaryCall } from "@grpc/grpc-js";
import {
  Authorization,
  CheckResponseSchema,
  type AttributeContext_HttpRequest,
  type CheckRequest,
  type CheckResponse,
} from "../../../generated/proto/envoy/service/auth/v3/external_auth_pb.ts";
import { startGrpc, type GrpcOptions, type GrpcServer } from "./grpc.ts";
import type { ProofContext } from "../proofs/prove.ts";

export interface AuthServer extends GrpcServer {
  /** Requests that it received, oldest first. */
  readonly seen: readonly CheckRequest[];
  /** Client address of each connection that carried a call. */
  readonly peers: ReadonlySet<string>;
  /** Metadata of each call. */
  readonly metadata: readonly ReadonlyMap<string, unknown>[];
}

export type Verdict = MessageInitShape<typeof CheckResponseSchema>;

export const ALLOW: Verdict = { status: { code: 0 } };
export const DENY: Verdict = { status: { code: 7 } };

/** @param decide returns the verdict; with undefined the call hangs */
export async function startAuthServer(
  context: Pick<ProofContext, "after">,
  decide: (request: CheckRequest) => Verdict | undefined = () => ALLOW,
  options: GrpcOptions = {},
): Promise<AuthServer> {
  const seen: CheckRequest[] = [];
  const peers = new Set<string>();
  const metadata: ReadonlyMap<string, unknown>[] = [];
  const check = (call: ServerUnaryCall<CheckRequest, CheckResponse>, done: sendUnaryData<CheckResponse>): void => {
    seen.push(call.request);
    peers.add(call.getPeer());
    metadata.push(new Map(Object.entries(call.metadata.getMap())));
    const verdict = decide(call.request);
    if (verdict !== undefined) done(null, create(CheckResponseSchema, verdict));
  };
  const server = await startGrpc(context, Authorization, { check }, options);
  return { ...server, seen, peers, metadata };
}

/** Returns what the server received about the HTTP request. */
export function httpOf(request: CheckRequest | undefined): AttributeContext_HttpRequest {
  const http = request?.attributes?.request?.http;
  if (http === undefined) throw new Error("the check says nothing about a request");
  return http;
}
