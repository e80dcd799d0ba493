/** An upstream that verifies Signature Version 4 of every request from the bytes on the wire. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { ProofContext } from "../proofs/prove.ts";
import { findSignatureFault, type ExpectedKeys } from "./llm/aws-signature.ts";

export interface SignedUpstream {
  readonly port: number;
  /** What was wrong with each request; undefined for a good signature. */
  readonly faults: (string | undefined)[];
  readonly bodies: string[];
}

/**
 * @param status answers of the first requests; 200 for all others
 * @param aheadMs how far its clock is ahead of ours
 */
export async function startSignedUpstream(
  context: ProofContext,
  keys: ExpectedKeys,
  status: readonly number[] = [],
  aheadMs = 0,
): Promise<SignedUpstream> {
  const upstream = { port: 0, faults: [] as (string | undefined)[], bodies: [] as string[] };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks);
      const { method = "", url = "", rawHeaders } = request;
      const nowMs = Date.now() + aheadMs;
      const fault = findSignatureFault({ method, url, rawHeaders, body }, keys, nowMs);
      response.setHeader("date", new Date(nowMs).toUTCString());
      response.statusCode = fault === undefined ? (status[upstream.faults.length] ?? 200) : 403;
      upstream.faults.push(fault);
      upstream.bodies.push(body.toString());
      response.end(fault);
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  upstream.port = (server.address() as AddressInfo).port;
  return upstream;
}
