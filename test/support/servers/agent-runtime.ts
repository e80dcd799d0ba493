/**
 * A strict AgentCore on a real socket behind TLS: it recomputes the signature of each request, takes no other paths than
 * those of its runtime, and answers as a test says.
 */
import type { ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import type { ProofContext } from "../proofs/prove.ts";
import { findSignatureFault, type ExpectedKeys } from "./llm/aws-signature.ts";

export const RUNTIME_ARN = "arn:aws:bedrock-agentcore:eu-west-1:111122223333:runtime/weather-9";
export const RUNTIME_HOST = "bedrock-agentcore.eu-west-1.amazonaws.com";
/** Path of the invocations of that runtime. */
export const RUNTIME_PATH: string =
  "/runtimes/arn%3Aaws%3Abedrock%2Dagentcore%3Aeu%2Dwest%2D1%3A111122223333%3Aruntime%2Fweather%2D9/invocations";

export const RUNTIME_KEYS: ExpectedKeys = {
  accessKeyId: "AKIDEXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
  region: "eu-west-1",
  service: "bedrock-agentcore",
};

interface RuntimeRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

export interface AgentRuntimeServer {
  readonly port: number;
  /** Requests that were in order, oldest first. */
  readonly seen: RuntimeRequest[];
  /** Answers the next requests. */
  respond: (request: RuntimeRequest, response: ServerResponse) => void;
}

interface AgentRuntimeOptions {
  /** Certificate of RUNTIME_HOST. */
  readonly pair: { readonly certificate: string; readonly key: string };
  readonly keys?: ExpectedKeys;
}

export async function startAgentRuntime(
  context: Pick<ProofContext, "after">,
  { pair, keys = RUNTIME_KEYS }: AgentRuntimeOptions,
): Promise<AgentRuntimeServer> {
  const seen: RuntimeRequest[] = [];
  const runtime: AgentRuntimeServer = {
    port: 0,
    seen,
    respond: (_, response) => void response.writeHead(200, { "content-type": "application/json" }).end('{"ok":true}'),
  };
  const server: Server = createServer({ cert: pair.certificate, key: pair.key }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method = "", url = "", headers, rawHeaders } = request;
      const body = Buffer.concat(chunks);
      const fault = findSignatureFault({ method, url, rawHeaders, body }, keys) ?? findFault(url, headers.host);
      if (fault !== undefined) return void response.writeHead(403).end(fault);
      const one = { method, url, headers, body: body.toString() };
      seen.push(one);
      runtime.respond(one, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return Object.assign(runtime, { port: (server.address() as AddressInfo).port }); // a TCP server has such an address
}

function findFault(url: string, host: string | undefined): string | undefined {
  if (host !== RUNTIME_HOST) return `this is not ${host}`;
  const [path] = url.split("?", 1);
  const paths = [RUNTIME_PATH, `${RUNTIME_PATH}/.well-known/agent-card.json`];
  return paths.some((known) => known === path) ? undefined : `${url} is not a path of the runtime`;
}
