/**
 * A SPIFFE agent for tests: the Workload API on a Unix socket, with the security header check of a real one. A test
 * decides what it sends, and can make it refuse, stay silent, stop and start again.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Server, ServerCredentials, status, type ServerWritableStream } from "@grpc/grpc-js";
import {
  SpiffeWorkloadAPI,
  X509SVIDResponseSchema,
  type X509SVIDRequest,
  type X509SVIDResponse,
} from "../../../generated/proto/spiffe/workload/workload_pb.ts";
import { serviceDefinition } from "../../../src/lib/grpc.ts";
import type { Proxy } from "../../../src/proxy/proxy.ts";
import type { ProofContext } from "../proofs/prove.ts";
import type { Authority, Svid } from "../fixtures/svid.ts";

type Stream = ServerWritableStream<X509SVIDRequest, X509SVIDResponse>;
type Answer = MessageInitShape<typeof X509SVIDResponseSchema>;

export interface WorkloadAgent {
  /** Address of the form unix:///…. */
  readonly endpoint: string;
  /** Number of streams that were ever opened. */
  readonly opened: number;
  /** Number of open streams. */
  readonly streams: number;
  /** Sends an answer on every open stream, and first on each new one. */
  send(answer: Answer): void;
  /** Answers PERMISSION_DENIED, on open streams too. */
  refuse(): void;
  /** Makes new streams receive nothing. */
  silence(): void;
  start(): Promise<void>;
  /** Ends every connection at once. */
  stop(): void;
}

/**
 * Returns an agent's answer for one workload.
 * @param foreign bundles of federated trust domains
 */
export function answerOf(svid: Svid, authority: Authority, foreign: readonly Authority[] = []): Answer {
  return {
    svids: [{ spiffeId: svid.id, x509Svid: svid.chain, x509SvidKey: svid.pkcs8, bundle: authority.der }],
    federatedBundles: Object.fromEntries(foreign.map(({ trustDomain, der }) => [`spiffe://${trustDomain}`, der])),
  };
}

/** @param answer the first answer; with undefined the agent refuses */
export async function startAgent(
  context: Pick<ProofContext, "after">,
  answer: Answer | undefined,
): Promise<WorkloadAgent> {
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-agent-"));
  const agent = new FakeAgent(join(folder, "agent.sock"), answer);
  context.after(() => {
    agent.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  await agent.start();
  return agent;
}

/** Resolves when the data plane reports the identity with this serial number, or none for undefined. */
export async function presentsIdentity(proxy: Proxy, svid: Svid | undefined): Promise<void> {
  for (;;) {
    const { workloadIdentity } = await proxy.state();
    if ((workloadIdentity?.serialNumber ?? undefined) === svid?.serialNumber) return;
    await new Promise(setImmediate);
  }
}

class FakeAgent implements WorkloadAgent {
  readonly endpoint: string;
  opened = 0;
  readonly #path: string;
  readonly #open = new Set<Stream>();
  #answer: Answer | "refuse" | "silence";
  #server: Server | undefined;

  constructor(path: string, answer: Answer | undefined) {
    this.#path = path;
    this.endpoint = `unix://${path}`;
    this.#answer = answer ?? "refuse";
  }

  get streams(): number {
    return this.#open.size;
  }

  send(answer: Answer): void {
    this.#answer = answer;
    for (const stream of this.#open) this.#speak(stream);
  }

  refuse(): void {
    this.#answer = "refuse";
    for (const stream of this.#open) this.#speak(stream);
  }

  silence(): void {
    this.#answer = "silence";
  }

  async start(): Promise<void> {
    rmSync(this.#path, { force: true });
    const server = new Server();
    server.addService(serviceDefinition(SpiffeWorkloadAPI), { fetchX509SVID: (stream: Stream) => this.#take(stream) });
    await new Promise<void>((resolve, reject) => {
      server.bindAsync(`unix:${this.#path}`, ServerCredentials.createInsecure(), (error) =>
        error === null ? resolve() : reject(error),
      );
    });
    this.#server = server;
  }

  stop(): void {
    this.#server?.forceShutdown();
    this.#server = undefined;
  }

  #take(stream: Stream): void {
    const header = stream.metadata.get("workload.spiffe.io");
    if (header.length !== 1 || header[0] !== "true") {
      stream.emit("error", { code: status.INVALID_ARGUMENT, details: "security header missing from request" });
      return;
    }
    this.opened++;
    this.#open.add(stream);
    stream.on("close", () => this.#open.delete(stream));
    stream.on("cancelled", () => this.#open.delete(stream));
    this.#speak(stream);
  }

  #speak(stream: Stream): void {
    if (this.#answer === "silence") return;
    if (this.#answer !== "refuse") {
      stream.write(create(X509SVIDResponseSchema, this.#answer));
      return;
    }
    this.#open.delete(stream);
    stream.emit("error", { code: status.PERMISSION_DENIED, details: "no identity issued" });
  }
}
