/**
 * A relay in front of a strict vendor that keeps the last request of a gateway and the vendor's verdict on it. It replaces
 * the credential by the vendor's own, because the gateways that are compared place theirs in different ways.
 */
import {
  createServer,
  request as startRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import type { ProofContext } from "../../support/proofs/prove.ts";

type Fields = Record<string, unknown>;

/** What reached the vendor. */
interface RecordedRequest {
  readonly path: string;
  readonly body: Fields;
  /** The vendor's answer when it refuses the request; undefined when it serves it. */
  readonly refusal: string | undefined;
}

export interface Recorder {
  readonly port: number;
  /** Returns the request since the last call, and forgets it. */
  take(): RecordedRequest | undefined;
}

interface Vendor {
  readonly port: number;
  readonly credential: readonly [name: string, value: string];
  /** Google reads names of members in snake_case too, and a model in the body; the strict server knows one spelling. */
  readonly isGoogle: boolean;
}

const CREDENTIALS = ["authorization", "x-api-key", "x-goog-api-key"];
/** Headers of this connection, of a signature that the credential replaces, and those that the vendor would ignore. */
const REMOVED = /^(?:host|connection|content-length|transfer-encoding|accept-encoding|x-amz-.*)$/;

export async function startRecorder(context: Pick<ProofContext, "after">, vendor: Vendor): Promise<Recorder> {
  let last: RecordedRequest | undefined;
  const server = createServer((request, response) => {
    void relay(request, response, vendor).then((recorded) => (last = recorded));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    // A server that listens on a port has an address of this form.
    port: (server.address() as AddressInfo).port,
    take() {
      const taken = last;
      last = undefined;
      return taken;
    },
  };
}

async function relay(request: IncomingMessage, response: ServerResponse, vendor: Vendor): Promise<RecordedRequest> {
  const received = await read(request);
  const body = vendor.isGoogle ? Buffer.from(JSON.stringify(inOneSpelling(parse(received)))) : received;
  const url = new URL(request.url ?? "/", "http://vendor.invalid");
  url.searchParams.delete("key");
  const path = url.pathname + url.search;
  const kept = Object.entries(request.headers).filter(
    ([name]) =>
      !CREDENTIALS.includes(name) && !REMOVED.test(name) && !(isBedrock(path) && name.startsWith("anthropic-")),
  );
  const [name, value] = vendor.credential;
  const headers = { ...Object.fromEntries(kept), [name]: value, "content-length": body.length };
  const answer = await ask({ port: vendor.port, method: request.method ?? "POST", path, headers }, body);
  const refusal = answer.status < 400 ? undefined : `${answer.status} ${answer.body.toString()}`;
  const recorded = { path, body: parse(body), refusal };
  response.writeHead(answer.status, { "content-type": answer.type });
  await new Promise<void>((resolve) => {
    response.end(answer.body, resolve);
  });
  return recorded;
}

/** The service ignores headers of other vendors, the strict server refuses them. */
function isBedrock(path: string): boolean {
  return path.startsWith("/model/");
}

/** Members whose names are the user's own. */
const USER_NAMES: ReadonlySet<string> = new Set(["args", "response", "properties"]);

function inOneSpelling({ model: _model, ...body }: Fields): unknown {
  return withCamelCase(body);
}

function withCamelCase(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withCamelCase);
  if (typeof value !== "object" || value === null) return value;
  const renamed = Object.entries(value).map(([name, member]) => {
    const camel = name.replaceAll(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase());
    return [camel, USER_NAMES.has(name) ? member : withCamelCase(member)] as const;
  });
  return Object.fromEntries(renamed);
}

interface Call {
  readonly port: number;
  readonly method: string;
  readonly path: string;
  readonly headers: OutgoingHttpHeaders;
}

async function ask(call: Call, body: Buffer): Promise<{ status: number; type: string; body: Buffer }> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    startRequest({ host: "127.0.0.1", ...call }, resolve)
      .once("error", reject)
      .end(body);
  });
  const { statusCode = 0, headers } = answer;
  return { status: statusCode, type: headers["content-type"] ?? "application/json", body: await read(answer) };
}

async function read(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer); // no encoding is set
  return Buffer.concat(chunks);
}

function parse(body: Buffer): Fields {
  const value: unknown = JSON.parse(body.toString() || "{}");
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}
