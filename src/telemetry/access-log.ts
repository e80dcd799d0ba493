/**
 * One JSON line per request. Lines are gathered and written together at the end of the turn of the event loop: a write
 * per request would cost more than the request. Holds no header, no query and no body, so no credential either.
 */
import type { RequestRecord } from "./request-record.ts";

export function createAccessLog(write: (text: string) => void): (record: RequestRecord) => void {
  let pending = "";
  const flush = (): void => {
    const text = pending;
    pending = "";
    write(text);
  };
  return (record) => {
    if (pending === "") setImmediate(flush);
    pending += `${JSON.stringify(fields(record))}\n`;
  };
}

function fields(record: RequestRecord): Record<string, unknown> {
  const { llm } = record;
  return {
    time: record.startedAt.toISOString(),
    level: "info",
    module: "request",
    gateway: record.gateway,
    listener: record.listener,
    ...optional("route", record.route),
    ...optional("rule", record.rule),
    ...optional("endpoint", record.backend),
    "src.addr": record.clientAddress,
    "http.method": record.method,
    "http.host": record.host,
    "http.path": record.path,
    "http.version": record.version,
    "http.status": record.status,
    reason: record.reason,
    ...optional("error", record.detail),
    ...(record.clientGone ? { client_gone: true } : {}),
    request_bytes: record.requestBytes,
    response_bytes: record.responseBytes,
    duration_ms: Math.round(record.durationMs * 1000) / 1000,
    ...(llm === undefined
      ? {}
      : {
          "gen_ai.provider.name": llm.provider,
          "gen_ai.request.model": llm.requestModel,
          "gen_ai.response.model": llm.responseModel,
          "gen_ai.usage.input_tokens": llm.inputTokens,
          "gen_ai.usage.output_tokens": llm.outputTokens,
          streaming: llm.streaming,
        }),
  };
}

function optional(name: string, value: string): Record<string, string> {
  return value === "" ? {} : { [name]: value };
}
