/**
 * An agent of the official A2A SDK that speaks JSON-RPC, HTTP+JSON and gRPC, each in 1.0 and 0.3. It repeats what it is
 * told, and refuses requests that did not come through a gateway.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { AgentCard, Artifact, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent, type Part } from "@a2a-js/sdk";
import { legacyGrpcService, LegacyA2AService } from "@a2a-js/sdk/compat/v0_3/server/grpc";
import {
  AgentEvent,
  DefaultRequestHandler,
  InMemoryPushNotificationStore,
  InMemoryTaskStore,
  UnauthenticatedUser,
  type AgentExecutor,
} from "@a2a-js/sdk/server";
import { agentCardHandler, jsonRpcHandler, restHandler } from "@a2a-js/sdk/server/express";
import { A2AService, grpcService } from "@a2a-js/sdk/server/grpc";
import { Server, ServerCredentials, type ServerUnaryCall } from "@grpc/grpc-js";
import express from "express";
import type { ProofContext } from "../proofs/prove.ts";

/** A text that begins with "wait" is answered in two steps; the second is taken when the agent is told "release", too. */
export interface TestAgent {
  readonly port: number;
  readonly grpcPort: number;
  /** Sets the authority under which its card lists its gRPC interface. */
  setGrpcUrl(url: string): void;
  /** Lets the agent end what waits. */
  release(): void;
}

const LEGACY = { enabled: true };
const BASE = "/agents/echo";
const BINDINGS = ["JSONRPC", "HTTP+JSON", "GRPC"];

/** @param generation an agent of 1.0 lists interfaces of 0.3 too; one of 0.3 shows a card of that shape */
export async function startAgent(context: ProofContext, generation: "1.0" | "0.3"): Promise<TestAgent> {
  let released = Promise.withResolvers<void>();
  const release = (): void => {
    released.resolve();
    released = Promise.withResolvers();
  };
  const executor: AgentExecutor = {
    async execute({ taskId, contextId, userMessage }, bus) {
      const said = userMessage.parts
        .map(({ content }: Part) => (content?.$case === "text" ? content.value : ""))
        .join("");
      const status = (state: string) => ({ state, timestamp: new Date().toISOString() });
      bus.publish(AgentEvent.task(Task.fromJSON({ id: taskId, contextId, status: status("TASK_STATE_WORKING") })));
      if (said === "release") release();
      if (said.startsWith("wait")) await released.promise;
      const artifact = Artifact.toJSON(Artifact.fromJSON({ artifactId: "1", parts: [{ text: said }] }));
      bus.publish(
        AgentEvent.artifactUpdate(TaskArtifactUpdateEvent.fromJSON({ taskId, contextId, artifact, lastChunk: true })),
      );
      bus.publish(
        AgentEvent.statusUpdate(
          TaskStatusUpdateEvent.fromJSON({ taskId, contextId, status: status("TASK_STATE_COMPLETED") }),
        ),
      );
      bus.finished();
    },
    cancelTask: () => Promise.resolve(),
  };

  const app = express();
  const server = createServer(app);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // a TCP server has such an address
  let grpcUrl = "";
  const versions = generation === "0.3" ? ["0.3"] : ["1.0", "0.3"];
  const card = (): AgentCard => {
    const urls = [`http://127.0.0.1:${port}${BASE}/rpc`, `http://127.0.0.1:${port}${BASE}/rest`, grpcUrl];
    return AgentCard.fromJSON({
      name: "echo",
      description: "Repeats.",
      version: "1.0.0",
      supportedInterfaces: versions.flatMap((protocolVersion) =>
        BINDINGS.map((protocolBinding, at) => ({ url: urls[at], protocolBinding, protocolVersion })),
      ),
      capabilities: { streaming: true, pushNotifications: true, extendedAgentCard: true },
      defaultInputModes: ["text/plain"],
      defaultOutputModes: ["text/plain"],
      skills: [{ id: "echo", name: "echo", description: "Repeats.", tags: [] }],
    });
  };
  const requestHandler = new DefaultRequestHandler(
    card(),
    new InMemoryTaskStore(),
    executor,
    undefined,
    new InMemoryPushNotificationStore(),
    undefined,
    () => Promise.resolve(card()),
  );
  const userBuilder = () => Promise.resolve(new UnauthenticatedUser());
  app.use((request: IncomingMessage, response, next) => {
    if (request.headers["cdn-loop"] === undefined) response.writeHead(418).end("this request came past the gateway");
    else next();
  });
  app.use(`${BASE}/.well-known/agent-card.json`, (request, _response, next) => {
    if (generation === "0.3") delete request.headers["a2a-version"];
    next();
  });
  app.use(
    `${BASE}/.well-known/agent-card.json`,
    agentCardHandler({ agentCardProvider: () => Promise.resolve(card()), legacyCompat: LEGACY }),
  );
  app.use(`${BASE}/rpc`, jsonRpcHandler({ requestHandler, userBuilder, legacyCompat: LEGACY }));
  app.use(`${BASE}/rest`, restHandler({ requestHandler, userBuilder, legacyCompat: LEGACY }));

  const grpc = new Server();
  const grpcUser = ({ metadata }: Pick<ServerUnaryCall<unknown, unknown>, "metadata">) => {
    if (metadata.get("cdn-loop").length === 0) throw new Error("this call came past the gateway");
    return userBuilder();
  };
  grpc.addService(A2AService, grpcService({ requestHandler, userBuilder: grpcUser }));
  grpc.addService(LegacyA2AService, legacyGrpcService({ requestHandler, userBuilder: grpcUser }));
  const grpcPort = await new Promise<number>((resolve, reject) =>
    grpc.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  context.after(() => {
    grpc.forceShutdown();
    server.closeAllConnections();
    server.close();
  });
  return {
    port,
    grpcPort,
    setGrpcUrl(url) {
      grpcUrl = url;
    },
    release,
  };
}
