/** A guardrail of MCP (`gwproxy.dev.ext_mcp.ExtMcp` over gRPC) whose answers a test decides. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { sendUnaryData, ServerUnaryCall } from "@grpc/grpc-js";
import {
  ExtMcp,
  McpRequestResultSchema,
  McpResponseResultSchema,
  type McpRequest,
  type McpRequestResult,
  type McpResponse,
  type McpResponseResult,
} from "../../../generated/proto/gwproxy/dev/ext_mcp/ext_mcp_pb.ts";
import type { ProofContext } from "../proofs/prove.ts";
import { startGrpc, type GrpcServer } from "./grpc.ts";

export interface McpGuardServer extends GrpcServer {
  /** Messages that it received, oldest first. */
  readonly requests: readonly McpRequest[];
  readonly results: readonly McpResponse[];
}

/** Decides by a message; undefined lets it pass. */
export interface McpGuardDecisions {
  readonly request?: (message: McpRequest) => MessageInitShape<typeof McpRequestResultSchema> | undefined;
  /** Never answers. */
  readonly isSilent?: boolean;
  readonly result?: (message: McpResponse) => MessageInitShape<typeof McpResponseResultSchema> | undefined;
}

const PASS = { result: { case: "pass", value: {} } } as const;

export async function startMcpGuard(
  context: Pick<ProofContext, "after">,
  decide: McpGuardDecisions = {},
): Promise<McpGuardServer> {
  const requests: McpRequest[] = [];
  const results: McpResponse[] = [];
  const server = await startGrpc(context, ExtMcp, {
    checkRequest({ request }: ServerUnaryCall<McpRequest, McpRequestResult>, done: sendUnaryData<McpRequestResult>) {
      requests.push(request);
      if (decide.isSilent === true) return;
      done(null, create(McpRequestResultSchema, decide.request?.(request) ?? PASS));
    },
    checkResponse(
      { request }: ServerUnaryCall<McpResponse, McpResponseResult>,
      done: sendUnaryData<McpResponseResult>,
    ) {
      results.push(request);
      done(null, create(McpResponseResultSchema, decide.result?.(request) ?? PASS));
    },
  });
  return { ...server, requests, results };
}
