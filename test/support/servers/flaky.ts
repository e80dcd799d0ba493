/** An upstream that fails as a test decides, once for each listed mishap, and then always answers 200. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { ProofContext } from "../proofs/prove.ts";

/** A status to answer with; "reset" resets the connection instead, "silence" never answers. */
export type Mishap = number | "reset" | "silence";

export interface Flaky {
  readonly port: number;
  /** Bodies and `x-retry-attempt` of the requests that it received, oldest first. */
  readonly seen: { readonly body: string; readonly attempt: string | undefined }[];
}

export async function startFlaky(context: ProofContext, mishaps: readonly Mishap[]): Promise<Flaky> {
  const seen: Flaky["seen"] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
    request.on("end", () => {
      const mishap = mishaps[seen.length] ?? 200;
      seen.push({ body, attempt: request.headers["x-retry-attempt"] as string | undefined });
      if (mishap === "reset") request.socket.resetAndDestroy();
      if (typeof mishap !== "number") return;
      response.statusCode = mishap;
      response.setHeader("x-mishap", String(mishap));
      response.end(`answer ${seen.length}`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, seen };
}
