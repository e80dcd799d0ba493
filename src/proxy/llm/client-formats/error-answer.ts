/** Prints errors of the gateway itself on LLM routes, in the format of the client. pipeline/error-reply.ts uses it. */
import { STATUS_CODES } from "node:http";
import { HeaderList } from "../../../lib/header-list.ts";
import type { ProxyError, ProxyErrorCode } from "../../exchange/errors.ts";
import { THREAD_UNSUPPORTED } from "../formats/messages/errors.ts";
import { clientFormatOf } from "./index.ts";

/** Codes that programs can compare, by error of the proxy. */
const CODES: Readonly<Partial<Record<ProxyErrorCode, string>>> = {
  llm_request_invalid: "invalid_request_body",
  llm_model_missing: "missing_model",
  llm_model_invalid: "invalid_model",
  body_too_large: "request_body_too_large",
  model_not_found: "model_not_found",
  model_authorization_denied: "model_authorization_denied",
  virtual_model_no_matching_target: "virtual_model_no_matching_target",
  virtual_model_target_not_found: "virtual_model_target_not_found",
  model_selection_failed: "model_selection_failed",
  virtual_model_not_resolved: "virtual_model_not_resolved",
  llm_thread_unsupported: THREAD_UNSUPPORTED,
};

export interface ErrorAnswer {
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: Buffer;
}

/**
 * @param asked path of the request without its query, and the format that the configuration gives it, if it does
 * @param limitBytes limit of request bodies, named in a 413 without a text
 */
export function printClientError(
  cause: ProxyError,
  asked: { readonly path: string; readonly format: string | undefined },
  limitBytes: number,
): ErrorAnswer {
  const { status, code } = cause;
  const message = cause.text === "" ? reasonPhrase(cause, limitBytes) : cause.text;
  const named = CODES[code];
  const error = { message, type: undefined, ...(named === undefined ? {} : { code: named }) };
  const body = clientFormatOf(asked.path, asked.format).printError(error, status);
  return {
    status,
    headers: new HeaderList(["content-type", "application/json"]),
    body: Buffer.from(JSON.stringify(body)),
  };
}

function reasonPhrase({ status, code }: ProxyError, limitBytes: number): string {
  const phrase = STATUS_CODES[status] ?? "Error";
  return code === "body_too_large" ? `${phrase}: the limit is ${limitBytes} bytes` : phrase;
}
