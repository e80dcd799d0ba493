/** The root `response` of expressions, for responses of the proxy, of upstreams and of failed attempts. */
import { Attributes, readers } from "./attributes.ts";
import { HeaderView } from "../../cel/header-view.ts";
import type { Reply } from "./exchange.ts";

/** A response as expressions see it. */
export interface ResponseInfo {
  readonly status: number;
  readonly headers: Reply["headers"];
  /** Trailers that followed the body, alternating names and values. */
  readonly trailers?: readonly string[] | undefined;
  readonly body: Buffer | null;
  readonly bodyPrefix: Buffer | null;
}

const RESPONSE = readers<ResponseInfo>({
  code: ({ status }) => status,
  grpcStatus: grpcStatusOf,
  headers: ({ headers }) => new HeaderView(headers),
  body: ({ body }) => body,
  bodyPrefix: ({ bodyPrefix }) => bodyPrefix,
});

export function responseRoot(answer: ResponseInfo): Attributes<ResponseInfo> {
  return new Attributes(RESPONSE, answer);
}

/** Returns undefined when the response has no valid grpc-status. */
export function grpcStatusOf({ headers, trailers = [] }: ResponseInfo): number | undefined {
  const at = trailers.findIndex((name, rank) => rank % 2 === 0 && name.toLowerCase() === "grpc-status");
  const text = at < 0 ? headers.get("grpc-status") : trailers[at + 1];
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}
