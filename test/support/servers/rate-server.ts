/** A rate limit server (Envoy rls v3 over gRPC) whose answers a test decides. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { sendUnaryData, ServerUnaryCall } from "@grpc/grpc-js";
import {
  RateLimitResponse_Code as Code,
  RateLimitResponseSchema,
  RateLimitService,
  type RateLimitRequest,
  type RateLimitResponse,
} from "../../../generated/proto/envoy/service/ratelimit/v3/rls_pb.ts";
import { startGrpc, type GrpcServer } from "./grpc.ts";
import type { ProofContext } from "../proofs/prove.ts";

export interface RateServer extends GrpcServer {
  /** Requests that it received, oldest first. */
  readonly seen: readonly RateLimitRequest[];
  /** Resolves when it has received so many requests. */
  asked(times: number): Promise<void>;
}

export type Answer = MessageInitShape<typeof RateLimitResponseSchema>;

const OK: Answer = { overallCode: Code.OK };
export const OVER: Answer = { overallCode: Code.OVER_LIMIT };

/** @param decide returns the answer; with undefined the call hangs */
export async function startRateServer(
  context: Pick<ProofContext, "after">,
  decide: (request: RateLimitRequest) => Answer | undefined = () => OK,
): Promise<RateServer> {
  const seen: RateLimitRequest[] = [];
  const waiting: { readonly times: number; readonly resolve: () => void }[] = [];
  const shouldRateLimit = (
    call: ServerUnaryCall<RateLimitRequest, RateLimitResponse>,
    done: sendUnaryData<RateLimitResponse>,
  ): void => {
    seen.push(call.request);
    const answer = decide(call.request);
    if (answer !== undefined) done(null, create(RateLimitResponseSchema, answer));
    for (const { times, resolve } of waiting) if (seen.length >= times) resolve();
  };
  const server = await startGrpc(context, RateLimitService, { shouldRateLimit });
  return {
    ...server,
    seen,
    asked: (times) =>
      new Promise((resolve) => {
        if (seen.length >= times) resolve();
        else waiting.push({ times, resolve });
      }),
  };
}
