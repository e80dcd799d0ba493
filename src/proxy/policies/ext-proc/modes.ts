/** Processing modes: which parts of a message a processor sees, and how it may override that for one request. */
import {
  ProcessingMode_BodySendMode as SendBody,
  ProcessingMode_HeaderSendMode as Send,
  type ProcessingMode,
} from "../../../../generated/proto/envoy/extensions/filters/http/ext_proc/v3/processing_mode_pb.ts";
import { BodyMode, type ExtProcMode } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError } from "../../../lib/errors.ts";

export type Kind = "request" | "response";

export interface Mode {
  readonly headers: boolean;
  readonly body: BodyMode;
  readonly trailers: boolean;
}

export type Modes = Readonly<Record<Kind, Mode>>;

/** @throws ConfigError for a message without modes */
export function compileMode(mode: ExtProcMode | undefined): Mode {
  if (mode === undefined || mode.body === BodyMode.UNSPECIFIED)
    throw new ConfigError("an external processor without processing modes");
  return { headers: mode.headers, body: mode.body, trailers: mode.trailers };
}

/**
 * Applies a mode override. STREAMED is treated as full duplex. The mode of request headers cannot change any more when
 * an override arrives.
 */
export function override(modes: Modes, wanted: ProcessingMode): Modes {
  return {
    request: {
      headers: modes.request.headers,
      body: BODY_MODES.get(wanted.requestBodyMode) ?? modes.request.body,
      trailers: sends(wanted.requestTrailerMode, modes.request.trailers),
    },
    response: {
      headers: sends(wanted.responseHeaderMode, modes.response.headers),
      body: BODY_MODES.get(wanted.responseBodyMode) ?? modes.response.body,
      trailers: sends(wanted.responseTrailerMode, modes.response.trailers),
    },
  };
}

/** The mode as announced in the first message of a stream. */
export function wireMode(mode: BodyMode): SendBody {
  switch (mode) {
    case BodyMode.BUFFERED:
      return SendBody.BUFFERED;
    case BodyMode.BUFFERED_PARTIAL:
      return SendBody.BUFFERED_PARTIAL;
    case BodyMode.FULL_DUPLEX_STREAMED:
      return SendBody.FULL_DUPLEX_STREAMED;
    default:
      return SendBody.NONE;
  }
}

const BODY_MODES: ReadonlyMap<SendBody, BodyMode> = new Map([
  [SendBody.NONE, BodyMode.NONE],
  [SendBody.STREAMED, BodyMode.FULL_DUPLEX_STREAMED],
  [SendBody.BUFFERED, BodyMode.BUFFERED],
  [SendBody.BUFFERED_PARTIAL, BodyMode.BUFFERED_PARTIAL],
  [SendBody.FULL_DUPLEX_STREAMED, BodyMode.FULL_DUPLEX_STREAMED],
]);

function sends(wanted: Send, configured: boolean): boolean {
  return wanted === Send.DEFAULT ? configured : wanted === Send.SEND;
}
