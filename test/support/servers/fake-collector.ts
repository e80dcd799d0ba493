/** Misbehaving OTLP log collectors, over gRPC and HTTP, whose answer to each request a test decides. */
import assert from "node:assert/strict";
import { create, fromBinary, toBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { Metadata, status, type sendUnaryData, type ServerUnaryCall } from "@grpc/grpc-js";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import {
  ExportLogsServiceRequestSchema,
  ExportLogsServiceResponseSchema,
  LogsService,
  type ExportLogsServiceRequest,
  type ExportLogsServiceResponse,
} from "../../../generated/proto/opentelemetry/proto/collector/logs/v1/logs_service_pb.ts";
import { Exporters } from "../../../src/proxy/observability/exporters.ts";
import { startGrpc, type GrpcServer } from "./grpc.ts";
import type { ProofContext } from "../proofs/prove.ts";
import { recordingLog } from "../gateway/silent-log.ts";
import { testClock } from "../gateway/test-clock.ts";

export interface FakeCollector extends GrpcServer {
  /** Number of records in each request, oldest first. */
  readonly seen: readonly number[];
  /** Headers of each request. */
  readonly headers: readonly Readonly<Record<string, unknown>>[];
  /** Resolves when there were so many requests. */
  asked(times: number): Promise<void>;
}

type Accepted = MessageInitShape<typeof ExportLogsServiceResponseSchema>;

/** "hang" sends no answer. `code` is a gRPC code or an HTTP status, `more` the metadata or headers of the answer. */
type Answer = Accepted | "hang" | { readonly code: number; readonly more?: Readonly<Record<string, string | Buffer>> };

export type Decide = (request: number) => Answer;

/** @param decide receives the number of the request, from 0 */
export async function startGrpcCollector(
  context: Pick<ProofContext, "after">,
  decide: Decide = () => ({}),
): Promise<FakeCollector> {
  const log = new Requests();
  const handler = (
    { request, metadata }: ServerUnaryCall<ExportLogsServiceRequest, ExportLogsServiceResponse>,
    done: sendUnaryData<ExportLogsServiceResponse>,
  ): void => {
    const answer = decide(log.add(request, metadata.getMap()));
    if (answer === "hang") return;
    if (!("code" in answer)) {
      done(null, create(ExportLogsServiceResponseSchema, answer));
      return;
    }
    const trailers = new Metadata();
    for (const [name, value] of Object.entries(answer.more ?? {})) trailers.set(name, value);
    done({ code: answer.code, details: status[answer.code] ?? "", metadata: trailers });
  };
  const server = await startGrpc(context, LogsService, { export: handler });
  return { ...server, ...log.read() };
}

/** Starts the same collector over HTTP. */
export async function startHttpCollector(
  context: Pick<ProofContext, "after">,
  decide: Decide = () => ({}),
): Promise<FakeCollector> {
  const log = new Requests();
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const message = fromBinary(ExportLogsServiceRequestSchema, await buffer(request));
    const answer = decide(log.add(message, request.headers));
    if (answer === "hang") return;
    // HTTP fields are text
    if ("code" in answer) response.writeHead(answer.code, { ...answer.more } as Record<string, string>).end("no");
    else response.end(toBinary(ExportLogsServiceResponseSchema, create(ExportLogsServiceResponseSchema, answer)));
  };
  const server = createServer((request, response) => void handle(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const stop = (): void => {
    server.close();
    server.closeAllConnections();
  };
  context.after(stop);
  // A TCP server that listens on a port has an address of this form.
  return { port: (server.address() as AddressInfo).port, stop, ...log.read() };
}

class Requests {
  readonly #seen: number[] = [];
  readonly #headers: Readonly<Record<string, unknown>>[] = [];
  #next = Promise.withResolvers<void>();

  /** @returns the number of the request */
  add(request: ExportLogsServiceRequest, headers: Readonly<Record<string, unknown>>): number {
    const records = request.resourceLogs.flatMap(({ scopeLogs }) => scopeLogs.flatMap(({ logRecords }) => logRecords));
    this.#headers.push(headers);
    this.#next.resolve();
    this.#next = Promise.withResolvers();
    return this.#seen.push(records.length) - 1;
  }

  read(): Pick<FakeCollector, "seen" | "headers" | "asked"> {
    return {
      seen: this.#seen,
      headers: this.#headers,
      asked: async (times) => {
        while (this.#seen.length < times) await this.#next.promise;
      },
    };
  }
}

/** Returns exporters for tests in which nothing is exported. */
export function noExporters(): Exporters {
  return new Exporters({
    log: recordingLog().log,
    clock: testClock(),
    callouts: { open: () => assert.fail("nobody exports here") },
    resource: [],
    onDropped: () => undefined,
  });
}
