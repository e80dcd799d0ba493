/** Services of every protocol that the gateway calls of its own, on two ports, with the credential of each call. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { create } from "@bufbuild/protobuf";
import {
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type sendUnaryData,
} from "@grpc/grpc-js";
import { serviceDefinition } from "../../../src/lib/grpc.ts";
import { Authorization, CheckResponseSchema } from "../../../generated/proto/envoy/service/auth/v3/external_auth_pb.ts";
import {
  ExternalProcessor,
  ProcessingResponseSchema,
  type ProcessingRequest,
  type ProcessingResponse,
} from "../../../generated/proto/envoy/service/ext_proc/v3/external_processor_pb.ts";
import {
  RateLimitResponse_Code,
  RateLimitResponseSchema,
  RateLimitService,
} from "../../../generated/proto/envoy/service/ratelimit/v3/rls_pb.ts";
import {
  ExtMcp,
  McpRequestResultSchema,
  McpResponseResultSchema,
} from "../../../generated/proto/gwproxy/dev/ext_mcp/ext_mcp_pb.ts";
import {
  ExportLogsServiceResponseSchema,
  LogsService,
} from "../../../generated/proto/opentelemetry/proto/collector/logs/v1/logs_service_pb.ts";
import type { ProofContext } from "../proofs/prove.ts";
import { pass } from "./proc-server.ts";

export interface CalledServices {
  readonly httpPort: number;
  readonly grpcPort: number;
  /** Headers `Authorization` by service, oldest first; "" for a call without one. */
  readonly shown: Map<string, string[]>;
}

/** Answers to calls over HTTP, by the first part of the path, which names the service. */
const ANSWERS: Readonly<Record<string, object>> = {
  "guard-over-http": { action: {} },
  "token-endpoint": { access_token: "minted", token_type: "Bearer", expires_in: 3600 },
};

type Unary = (call: ServerUnaryCall<unknown, unknown>, done: sendUnaryData<unknown>) => void;

export async function startCalledServices(context: ProofContext): Promise<CalledServices> {
  const shown = new Map<string, string[]>();
  const note = (service: string, authorization: unknown): void => {
    shown.set(service, [...(shown.get(service) ?? []), String(authorization ?? "")]);
  };
  const http = createServer((request, response) => {
    const [, first = ""] = (request.url ?? "").split(/[/?]/);
    // Webhooks of guards are called at a path of their own.
    const name = first === "request" ? "guard-over-http" : first;
    note(name, request.headers.authorization);
    request.resume();
    request.on("end", () => {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(ANSWERS[name] ?? {}));
    });
  });
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  context.after(() => {
    http.closeAllConnections();
    http.close();
  });
  const { port: httpPort } = http.address() as AddressInfo; // a TCP server's address is one

  const unary =
    (service: string, answer: () => unknown): Unary =>
    ({ metadata }, done) => {
      note(service, metadata.get("authorization")[0]);
      done(null, answer());
    };
  const server = new Server();
  server.addService(serviceDefinition(Authorization), {
    check: unary("ext-auth-over-grpc", () => create(CheckResponseSchema, { status: { code: 0 } })),
  });
  server.addService(serviceDefinition(RateLimitService), {
    shouldRateLimit: unary("rate-limit", () =>
      create(RateLimitResponseSchema, { overallCode: RateLimitResponse_Code.OK }),
    ),
  });
  server.addService(serviceDefinition(ExtMcp), {
    checkRequest: unary("mcp-guard", () => create(McpRequestResultSchema, { result: { case: "pass", value: {} } })),
    checkResponse: unary("mcp-guard", () => create(McpResponseResultSchema, { result: { case: "pass", value: {} } })),
  });
  server.addService(serviceDefinition(LogsService), {
    export: unary("collector-over-grpc", () => create(ExportLogsServiceResponseSchema)),
  });
  server.addService(serviceDefinition(ExternalProcessor), {
    process(stream: ServerDuplexStream<ProcessingRequest, ProcessingResponse>) {
      note("ext-proc", stream.metadata.get("authorization")[0]);
      stream.on("data", (message: ProcessingRequest) => {
        stream.write(create(ProcessingResponseSchema, pass(message)));
      });
      stream.on("error", () => undefined);
      stream.on("end", () => void stream.end());
    },
  });
  context.after(() => server.forceShutdown());
  const grpcPort = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return { httpPort, grpcPort, shown };
}
