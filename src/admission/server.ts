/**
 * The webhook's HTTPS server. In: AdmissionReview on /validate. Out: verdicts. /healthz says that it can answer. What it
 * cannot understand it refuses, and the API server's failure policy refuses with it.
 */
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { H3, HTTPError } from "h3";
import { toNodeHandler } from "h3/node";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import type { KeyPair } from "../lib/x509.ts";
import { MAX_DEPTH, MAX_VALUES } from "./bounds.ts";
import { type JsonBounds, jsonFault } from "./json-bounds.ts";
import { type AdmissionReview, type ValidateObject, readReview, review } from "./review.ts";

export interface WebhookServerOptions {
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  readonly certificate: KeyPair;
  readonly validate: ValidateObject;
  readonly log: Logger;
}

export interface WebhookServer {
  readonly address: AddressInfo;
  /** New handshakes use it; open connections and the listening socket stay. */
  useCertificate(pair: KeyPair): void;
  stop(): Promise<void>;
}

/** An update carries the object twice, and etcd takes 1.5 MiB of each; what is left is the envelope. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;
/** The object stands two levels below the review. */
const BOUNDS: JsonBounds = {
  measuredDepth: 3,
  maxDepth: MAX_DEPTH + 2,
  maxValues: 2 * MAX_VALUES,
  maxBytes: 2 * 1024 * 1024,
};
/** How far the uid of a review may stand from its start. */
const HEAD_BYTES = 1024;
const REQUEST_TIMEOUT_MS = 10_000;
/** Longer than the API server keeps an idle connection: a review must not be sent into one that is being closed. */
const KEEP_ALIVE_MS = 120_000;

export async function startWebhookServer(options: WebhookServerOptions): Promise<WebhookServer> {
  const server = createServer(
    { ...tlsOptions(options.certificate), minVersion: "TLSv1.2" },
    toNodeHandler(webhookApp(options)),
  );
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.on("tlsClientError", (error) => options.log.debug("TLS handshake failed", { reason: error.message }));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, options.host, resolve);
  });
  server.removeAllListeners("error");
  server.on("error", (error) => options.log.error("webhook server", { reason: error.message }));
  return {
    // Listening on a TCP port: the address is an object.
    address: server.address() as AddressInfo,
    useCertificate: (pair) => server.setSecureContext({ ...tlsOptions(pair), minVersion: "TLSv1.2" }),
    stop: () => close(server),
  };
}

function webhookApp({ validate, log }: WebhookServerOptions): H3 {
  const app = new H3({ silent: true });
  app.get("/healthz", () => "ok");
  app.post("/validate", async ({ req }) => {
    const body = await boundedBody(req);
    const fault = jsonFault(body, BOUNDS);
    if (fault !== undefined) return refusedUnread(body, fault.message);
    const request = readReview(parseJson(body.toString("utf8")));
    if (request === undefined)
      throw new HTTPError({ status: 400, message: "not an AdmissionReview of admission.k8s.io/v1" });
    try {
      const verdict = review(request, validate);
      log.debug("reviewed", { object: request.title, operation: request.operation, allowed: verdict.response.allowed });
      return verdict;
    } catch (error) {
      log.error("review failed: refused", { object: request.title, reason: messageOf(error) });
      throw new HTTPError({ status: 500, message: "the object could not be checked", cause: error });
    }
  });
  return app;
}

async function boundedBody(request: Request): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of request.body ?? []) {
    size += part.byteLength;
    if (size > MAX_BODY_BYTES) throw new HTTPError({ status: 413, message: `more than ${MAX_BODY_BYTES} bytes` });
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/** The answer needs the name of the question, which stands at the start; the rest stays unread. */
function refusedUnread(body: Buffer, message: string): AdmissionReview {
  const uid = /"uid":\s*"([\w-]{1,64})"/.exec(body.toString("latin1", 0, HEAD_BYTES))?.[1];
  if (uid === undefined) throw new HTTPError({ status: 413, message });
  const violation = { path: "", severity: "error", reason: "FieldValueTooLong", message, suggestion: "" } as const;
  return review({ uid, operation: "CREATE", object: undefined, oldObject: undefined, title: "" }, () => [violation]);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new HTTPError({ status: 400, message: "the body is not JSON" });
  }
}

function tlsOptions({ certificate, key }: KeyPair): { cert: string; key: string } {
  return { cert: certificate, key };
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeIdleConnections();
    // A client that keeps a request open must not hold the process.
    setTimeout(() => server.closeAllConnections(), REQUEST_TIMEOUT_MS).unref();
  });
}
