/**
 * Translates between messages of the proxy and those of an external processor: headers, bodies, trailers, and the edits
 * that the processor asks for.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { HeaderMapSchema } from "../../../../generated/proto/envoy/config/core/v3/base_pb.ts";
import type {
  HeaderMutation,
  ImmediateResponse,
} from "../../../../generated/proto/envoy/service/ext_proc/v3/external_processor_pb.ts";
import { HeaderList } from "../../../lib/header-list.ts";
import type { Body } from "../../exchange/body.ts";
import type { Exchange, Reply } from "../../exchange/exchange.ts";
import type { Kind } from "./modes.ts";
import type { Part } from "./session.ts";
import { applyHeaderOptions, removeHeaders } from "../shared/header-options.ts";
import { requestTarget } from "../shared/request-support.ts";
import { responseTarget } from "../shared/response-support.ts";
import type { TransformTarget } from "../shared/transform-support.ts";

type HeaderMap = MessageInitShape<typeof HeaderMapSchema>;

/** One half of an exchange: the request, or the response to it. */
export interface Side {
  readonly kind: Kind;
  readonly target: TransformTarget;
  readonly pseudo: readonly string[];
  /** Fields to show in place of those of `target`; unset when nothing has to be kept from the processor. */
  readonly shown?: readonly string[];
  body: Body;
}

export function requestSide(exchange: Exchange): Side {
  const { method, scheme, host, target } = exchange;
  return {
    kind: "request",
    target: requestTarget(exchange),
    pseudo: [":method", method, ":scheme", scheme, ":authority", host, ":path", target],
    get body() {
      return exchange.requestBody;
    },
    set body(body) {
      exchange.requestBody = body;
    },
  };
}

export function responseSide(reply: Reply): Side {
  return {
    kind: "response",
    target: responseTarget(reply),
    pseudo: [":status", String(reply.status)],
    get body() {
      return reply.body;
    },
    set body(body) {
      reply.body = body;
    },
  };
}

export function headersPart({ kind, pseudo, target, shown = target.headers.raw, body }: Side): Part {
  const headers = headerMap([...pseudo, ...shown]);
  const value = { headers, endOfStream: body === null };
  return kind === "request" ? { case: "requestHeaders", value } : { case: "responseHeaders", value };
}

export function bodyPart(kind: Kind, body: Uint8Array, endOfStream: boolean): Part {
  const value = { body, endOfStream };
  return kind === "request" ? { case: "requestBody", value } : { case: "responseBody", value };
}

export function trailersPart(kind: Kind, raw: readonly string[]): Part {
  const value = { trailers: headerMap(raw) };
  return kind === "request" ? { case: "requestTrailers", value } : { case: "responseTrailers", value };
}

/** Names in lower case, values as raw bytes. */
function headerMap(raw: readonly string[]): HeaderMap {
  const headers: { key: string; rawValue: Uint8Array }[] = [];
  for (let at = 0; at < raw.length; at += 2)
    headers.push({ key: (raw[at] as string).toLowerCase(), rawValue: Buffer.from(raw[at + 1] as string, "latin1") });
  return { headers };
}

export function mutate(mutation: HeaderMutation | undefined, target: TransformTarget): void {
  if (mutation === undefined) return;
  removeHeaders(mutation.removeHeaders, target.headers);
  applyHeaderOptions(mutation.setHeaders, target);
}

export function mutateTrailers(mutation: HeaderMutation | undefined, trailers: readonly string[]): string[] {
  const headers = new HeaderList([...trailers]);
  mutate(mutation, { headers, setPseudo: () => undefined });
  return headers.raw;
}

const OK = 200;

export function immediateReply({ status, headers, body, grpcStatus }: ImmediateResponse): Reply {
  const list = new HeaderList();
  if (grpcStatus !== undefined) list.set("grpc-status", String(grpcStatus.status));
  mutate(headers, { headers: list, setPseudo: () => undefined });
  const code = status?.code ?? OK;
  return {
    status: code >= 200 && code <= 599 ? code : OK,
    headers: list,
    body: body.length === 0 ? null : Buffer.from(body),
    upstream: false,
  };
}
