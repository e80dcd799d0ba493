/**
 * Fetches one document with a single GET, completely or not at all: no redirects, with limits of time and size.
 * runtime/remote-jwks.ts passes it to documents.ts.
 */
import { once } from "node:events";
import { lookup } from "node:dns";
import { request as plainRequest, type IncomingMessage } from "node:http";
import { request as tlsRequest, type RequestOptions } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import type { ConnectionOptions } from "node:tls";
import type { BackendTls } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { isLocalAddress } from "../../lib/network/local-address.ts";
import { messageOf, SourceError } from "../../lib/errors.ts";
import { ignore } from "../../lib/ignore.ts";
import type { DocumentAddress, JwksRequest } from "./documents.ts";

export interface FetchOptions {
  /** Translates TLS settings to the options of a handshake with a host. */
  readonly tlsOptions: (tls: BackendTls, host: string) => ConnectionOptions;
  readonly timeoutMs?: number;
  /**
   * Decides on the resolved address whether fetching from it is forbidden. Checking the address instead of the name
   * also covers names that resolve to a forbidden address.
   */
  readonly refuses?: (address: string, port: number) => boolean;
}

const TIMEOUT_MS = 10_000;
/** Half of the size that a ConfigMap can hold. */
const MAX_BYTES = 524_288;

/** @throws SourceError when no complete answer with status 200 arrives; the message contains nothing of a body */
export async function fetchDocument(
  wanted: JwksRequest,
  address: DocumentAddress,
  signal: AbortSignal,
  { tlsOptions, timeoutMs: usualMs = TIMEOUT_MS, refuses = () => false }: FetchOptions,
): Promise<string> {
  const url = new URL(wanted.url);
  const { timeoutMs = usualMs, connectTimeoutMs } = wanted;
  const timeout = AbortSignal.timeout(timeoutMs);
  const connecting = new AbortController();
  const timer = connectTimeoutMs === undefined ? undefined : setTimeout(() => connecting.abort(), connectTimeoutMs);
  const isRefused = (found: string): boolean =>
    refuses(found, address.port) || (address.isRemote === true && isLocalAddress(found));
  // Node does not call `lookup` for literal addresses, so check them here.
  if (address.unixPath === "" && isIP(address.host) !== 0 && isRefused(address.host)) throw new SourceError(REFUSED);
  const place = address.unixPath === "" ? { host: address.host, port: address.port } : { socketPath: address.unixPath };
  const options = {
    ...place,
    path: url.pathname,
    headers: { host: url.host, accept: "application/json", "user-agent": "gwproxy", connection: "close" },
    agent: false,
    lookup: guardedLookup(isRefused),
    signal: AbortSignal.any([signal, timeout, connecting.signal]),
  };
  const secured = (tls: BackendTls): RequestOptions & ConnectionOptions => ({
    ...options,
    ...tlsOptions(tls, url.hostname.replace(/^\[|\]$/g, "")),
    // The request is HTTP/1.1, whatever protocols the backend offers to others.
    ALPNProtocols: ["http/1.1"],
  });
  try {
    const outgoing = wanted.tls === undefined ? plainRequest(options) : tlsRequest(secured(wanted.tls));
    outgoing.once("socket", (socket) => {
      socket.once(wanted.tls === undefined ? "connect" : "secureConnect", () => clearTimeout(timer));
    });
    outgoing.end();
    // After the response has begun, its own stream reports errors.
    outgoing.on("error", ignore);
    // `response` events carry one IncomingMessage
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    return await readWhole(response);
  } catch (error) {
    if (error instanceof SourceError) throw error;
    if (connecting.signal.aborted)
      throw new SourceError(`no connection within ${connectTimeoutMs} ms`, { cause: error });
    if (timeout.aborted) throw new SourceError(`no whole answer within ${timeoutMs} ms`, { cause: error });
    throw new SourceError(messageOf(error), { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

const REFUSED = "the address is on this machine or its link, where nothing may be fetched";

/** Refuses a name when any of its addresses is refused. */
function guardedLookup(isRefused: (address: string) => boolean): LookupFunction {
  return (host, options, callback) => {
    lookup(host, { ...options, all: true }, (error, found) => {
      if (error !== null) return callback(error, "", 0);
      const [first] = found;
      if (first === undefined || found.some(({ address }) => isRefused(address)))
        return callback(new SourceError(REFUSED), "", 0);
      if (options.all === true) callback(null, found);
      else callback(null, first.address, first.family);
    });
  };
}

async function readWhole(response: IncomingMessage): Promise<string> {
  const { statusCode } = response;
  if (statusCode !== 200) {
    response.destroy();
    throw new SourceError(`the server answered ${statusCode}`);
  }
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response) {
    const bytes = chunk as Buffer; // chunks are Buffers because no encoding is set
    size += bytes.length;
    if (size > MAX_BYTES) {
      response.destroy();
      throw new SourceError(`the answer is larger than ${MAX_BYTES} bytes`);
    }
    chunks.push(bytes);
  }
  if (!response.complete) throw new SourceError("the answer broke off");
  return Buffer.concat(chunks).toString("utf8");
}
