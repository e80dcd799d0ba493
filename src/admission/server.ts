/**
 * The HTTPS server of the webhook; runtime/webhook.ts starts it. It answers AdmissionReviews on /validate, and /healthz
 * reports that it can. A request that it cannot understand gets an error, and the failure policy of the API server then
 * refuses the object. Every pod in the cluster can connect, so time, connections and memory are limited; the reviews
 * themselves run on threads (review-threads.ts).
 */
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { H3, HTTPError } from "h3";
import { toNodeHandler } from "h3/node";
import type { Logger } from "../lib/log.ts";
import type { KeyPair } from "../lib/certificates/x509.ts";
import type { ReviewAnswer } from "./answer.ts";

export interface WebhookServerOptions {
  readonly host: string;
  /** Port to listen on; 0 selects a free one. */
  readonly port: number;
  readonly certificate: KeyPair;
  /** Answers the bytes of a review; the bytes are transferred. */
  readonly review: (body: Uint8Array<ArrayBuffer>) => Promise<ReviewAnswer>;
  readonly log: Logger;
  /** Time limit for a handshake, for a request head and for a whole request, each; 10,000 by default. */
  readonly requestTimeoutMs?: number;
  readonly maxConnections?: number;
}

export interface WebhookServer {
  readonly address: AddressInfo;
  /** Uses the pair for new handshakes; open connections and the listening socket stay. */
  useCertificate(pair: KeyPair): void;
  stop(): Promise<void>;
}

/** An update contains the object twice, and etcd takes 1.5 MiB of each; the rest is the envelope. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;
/** Limit of all bodies together that are arriving or waiting. */
const MAX_HELD_BYTES = 64 * 1024 * 1024;
const REQUEST_TIMEOUT_MS = 10_000;
/** Node checks for slow requests this many times within the limit. */
const CHECKS_PER_TIMEOUT = 10;
/**
 * Longer than the API server keeps an idle connection, so that it never sends a review into a connection that is being
 * closed.
 */
const KEEP_ALIVE_MS = 120_000;
/** An API server needs a few connections, and a cluster seldom has more than five API servers. */
const MAX_CONNECTIONS = 256;

export async function startWebhookServer(options: WebhookServerOptions): Promise<WebhookServer> {
  const { requestTimeoutMs = REQUEST_TIMEOUT_MS, maxConnections = MAX_CONNECTIONS, log } = options;
  const server = createServer(
    {
      ...tlsOptions(options.certificate),
      minVersion: "TLSv1.2",
      handshakeTimeout: requestTimeoutMs,
      headersTimeout: requestTimeoutMs,
      requestTimeout: requestTimeoutMs,
      // Node checks every 30 s by default, which could extend a limit of 10 s to 40 s.
      connectionsCheckingInterval: Math.ceil(requestTimeoutMs / CHECKS_PER_TIMEOUT),
      keepAliveTimeout: KEEP_ALIVE_MS,
    },
    toNodeHandler(webhookApp(options)),
  );
  // Limits how long a client may take to read its answer.
  server.setTimeout(KEEP_ALIVE_MS);
  server.maxConnections = maxConnections;
  server.on("drop", () => {
    log.warn("too many connections: one was refused, and idle ones are closed", { max: maxConnections });
    server.closeIdleConnections();
  });
  server.on("tlsClientError", (error) => log.debug("TLS handshake failed", { reason: error.message }));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, options.host, resolve);
  });
  server.removeAllListeners("error");
  server.on("error", (error) => log.error("webhook server", { reason: error.message }));
  return {
    // The server listens on a TCP port, so the address is an object.
    address: server.address() as AddressInfo,
    useCertificate: (pair) => server.setSecureContext({ ...tlsOptions(pair), minVersion: "TLSv1.2" }),
    stop: () => close(server),
  };
}

function webhookApp({ review, log }: WebhookServerOptions): H3 {
  const app = new H3({ silent: true });
  const memory = new HeldBytes();
  app.get("/healthz", () => "ok");
  app.post("/validate", async ({ req }) => {
    const hold = memory.hold();
    try {
      const answer = await review(await boundedBody(req, hold));
      if (answer.kind === "verdict") {
        const { object, operation, allowed, text } = answer;
        log.debug("reviewed", { object, operation, allowed });
        return new Response(text, { headers: { "content-type": "application/json;charset=UTF-8" } });
      }
      const { status, message, reason } = answer;
      if (reason !== undefined) log.error("review failed: refused", { reason });
      throw new HTTPError({ status, message });
    } finally {
      hold.release();
    }
  });
  return app;
}

/** Accounts for the memory of all bodies together. */
class HeldBytes {
  #bytes = 0;

  hold(): Hold {
    let own = 0;
    return {
      add: (bytes) => {
        own += bytes;
        this.#bytes += bytes;
        return this.#bytes <= MAX_HELD_BYTES;
      },
      release: () => {
        this.#bytes -= own;
        own = 0;
      },
    };
  }
}

interface Hold {
  /** @returns false when the limit is exceeded */
  add(bytes: number): boolean;
  release(): void;
}

/** Returns the body as a copy of its own, since it is transferred to another thread. */
async function boundedBody(request: Request, hold: Hold): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of request.body ?? []) {
    size += part.byteLength;
    if (size > MAX_BODY_BYTES) throw new HTTPError({ status: 413, message: `more than ${MAX_BODY_BYTES} bytes` });
    if (!hold.add(part.byteLength)) throw new HTTPError({ status: 503, message: "too many reviews at once" });
    parts.push(part);
  }
  const body = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    body.set(part, at);
    at += part.byteLength;
  }
  return body;
}

function tlsOptions({ certificate, key }: KeyPair): { cert: string; key: string } {
  return { cert: certificate, key };
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeIdleConnections();
    // A client that keeps a request open must not keep the process alive.
    setTimeout(() => server.closeAllConnections(), REQUEST_TIMEOUT_MS).unref();
  });
}
