/**
 * Answers requests for OAuth metadata, registrations and tokens in place of a backend. `protected-resource.ts` hands
 * them over, before any check of tokens. All of it may be read by scripts of any origin.
 */
import { H3, type H3Event } from "h3";
import type { McpResource } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HeaderList } from "../../../lib/header-list.ts";
import type { CalloutAnswer } from "../../callouts/callout.ts";
import { ProxyError } from "../../exchange/errors.ts";
import type { Exchange, Reply } from "../../exchange/exchange.ts";
import {
  parseMembers,
  printRegistration,
  printResource,
  printServer,
  type Members,
  type MetadataUrls,
} from "./documents.ts";
import type { Issuer } from "./issuer.ts";
import type { MetadataKind } from "./paths.ts";

/** A request for one of the documents or endpoints. */
interface MetadataRequest {
  readonly exchange: Exchange;
  readonly kind: MetadataKind;
  readonly urls: MetadataUrls;
}

export type MetadataApp = (request: MetadataRequest) => Promise<Reply>;

/** Registrations and token requests are small; 64 KiB is far more than any client sends. */
const MAX_BODY_BYTES = 65_536;

interface Cors {
  readonly methods: string;
  readonly headers: string;
}

const DOCUMENT: Cors = { methods: "GET, OPTIONS", headers: "content-type" };
const CORS: Readonly<Record<MetadataKind, Cors>> = {
  resource: DOCUMENT,
  server: DOCUMENT,
  registration: { methods: "POST, OPTIONS", headers: "content-type" },
  token: { methods: "POST, OPTIONS", headers: "content-type, authorization" },
};
/** Headers of the issuer's answers that concern the client. */
const PASSED = ["content-type", "cache-control", "pragma", "www-authenticate", "retry-after"];

const METHODS: ReadonlySet<string> = new Set(["GET", "POST", "OPTIONS"]);

/** What handlers find in the context of an event. */
interface Context extends MetadataRequest {
  /** The error that a handler ended with: it becomes the reply as any other error of the pipeline. */
  failure: unknown;
}

/** @param metadata members of the protected-resource document that the operator added */
export function createMetadataApp(spec: McpResource, metadata: Members, issuer: Issuer): MetadataApp {
  const app = new H3({ silent: true });
  app.get(
    "/resource",
    handle(({ urls }) => json(printResource(spec, urls, metadata), DOCUMENT)),
  );
  app.get(
    "/server",
    handle(async ({ urls }) => json(printServer(spec, urls, await issuer.metadata()), DOCUMENT)),
  );
  app.post(
    "/registration",
    handle(({ exchange }) => register(spec, issuer, exchange)),
  );
  app.post(
    "/token",
    handle(async ({ exchange }) => {
      const { requestHeaders: headers } = exchange;
      return pass(await issuer.token({ headers, body: await readBody(exchange) }, exchange), CORS.token);
    }),
  );
  app.options(
    "/**",
    handle(({ kind }) => new Response(null, { status: 204, headers: corsHeaders(CORS[kind]) })),
  );
  app.all(
    "/**",
    handle(({ kind }) => {
      const headers = { ...corsHeaders(CORS[kind]), allow: CORS[kind].methods };
      return new Response("method not allowed\n", { status: 405, headers });
    }),
  );
  return async (request) => {
    const context: Context = { ...request, failure: undefined };
    // `Request` refuses some methods, such as TRACE; all that are not served get the same answer.
    const init = { method: METHODS.has(request.exchange.method) ? request.exchange.method : "PUT" };
    // h3 passes the object on as it is, and types it as a bag of anything.
    const answer = await app.request(`/${request.kind}`, init, context as unknown as H3Event["context"]);
    if (context.failure !== undefined) throw context.failure;
    return replyOf(answer);
  };
}

function handle(
  answer: (request: MetadataRequest) => Response | Promise<Response>,
): (event: H3Event) => Promise<Response> {
  return async (event) => {
    const context = event.context as unknown as Context; // the object that was passed to `request`
    try {
      return await answer(context);
    } catch (error) {
      context.failure = error;
      return new Response(null, { status: 500 });
    }
  };
}

async function register({ clientId }: McpResource, issuer: Issuer, exchange: Exchange): Promise<Response> {
  const body = await readBody(exchange);
  if (clientId === "")
    return pass(await issuer.register({ headers: exchange.requestHeaders, body }, exchange), CORS.registration);
  const request = parseMembers(body.toString());
  if (request === undefined) return json('{"error":"invalid_client_metadata"}', CORS.registration, 400);
  return json(printRegistration(clientId, request), CORS.registration, 201);
}

async function readBody(exchange: Exchange): Promise<Buffer> {
  const body = await exchange.bufferRequestBody(MAX_BODY_BYTES);
  if (body === undefined) throw new ProxyError("body_too_large");
  return body;
}

function json(text: string, cors: Cors, status = 200): Response {
  return new Response(text, { status, headers: { "content-type": "application/json", ...corsHeaders(cors) } });
}

function pass({ status, headers, body }: CalloutAnswer, cors: Cors): Response {
  const kept = PASSED.flatMap((name) => {
    const value = headers.get(name);
    return value === undefined ? [] : [[name, value] as const];
  });
  // A status such as 204 allows no body, not even an empty one.
  return new Response(body.length === 0 ? null : new Uint8Array(body), {
    status,
    headers: { ...Object.fromEntries(kept), ...corsHeaders(cors) },
  });
}

function corsHeaders({ methods, headers }: Cors): Record<string, string> {
  return {
    "access-control-allow-origin": "*",
    "access-control-allow-methods": methods,
    "access-control-allow-headers": headers,
  };
}

async function replyOf(answer: Response): Promise<Reply> {
  const headers = new HeaderList([...answer.headers].flat());
  const body = answer.body === null ? null : Buffer.from(await answer.arrayBuffer());
  return { status: answer.status, headers, body, upstream: false };
}
