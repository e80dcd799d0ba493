/** Reads the body of a request that names its model, JSON or multipart. The handler of models uses it. */
import { codingOf } from "../../exchange/content-coding.ts";
import { ProxyError } from "../../exchange/errors.ts";
import type { RoutedExchange } from "../../exchange/exchange.ts";
import { readRequest, tooLarge } from "../request.ts";
import type { JsonObject } from "../shared/json.ts";
import { findModelField, isMultipart } from "./multipart.ts";

export interface NamedBody {
  /** The members that are known; of a multipart body the model alone. */
  readonly object: JsonObject;
  /** The whole body where it is JSON. */
  readonly json: JsonObject | undefined;
  /**
   * Returns the body with another name of the model, for requests whose bodies are kept.
   * @throws ProxyError encoding_unsupported
   */
  rename(name: string): Buffer;
}

/** @throws ProxyError body_too_large, encoding_unsupported, llm_request_invalid */
export async function readNamedBody(exchange: RoutedExchange): Promise<NamedBody> {
  const type = exchange.requestHeaders.get("content-type") ?? "";
  return isMultipart(type) ? readForm(exchange, type) : readJson(exchange);
}

async function readJson(exchange: RoutedExchange): Promise<NamedBody> {
  const json = await readRequest(exchange);
  return {
    object: json,
    json,
    rename(model) {
      requirePlain(exchange);
      return Buffer.from(JSON.stringify({ ...json, model }));
    },
  };
}

async function readForm(exchange: RoutedExchange, type: string): Promise<NamedBody> {
  requirePlain(exchange);
  const { requestLimitBytes } = exchange;
  const body = await exchange.bufferRequestBody(requestLimitBytes);
  if (body === undefined) throw tooLarge(requestLimitBytes);
  const field = findModelField(body, type);
  return {
    object: field === undefined ? {} : { model: field.name },
    json: undefined,
    rename: (name) => field?.rename(name) ?? body,
  };
}

/** A body that is kept also keeps the header field that names its coding. @throws ProxyError encoding_unsupported */
function requirePlain({ requestHeaders }: RoutedExchange): void {
  const coding = codingOf(requestHeaders.getAll("content-encoding").join(","));
  if (coding !== null) throw new ProxyError("encoding_unsupported");
}
