/** Reads the method of a call in the JSON-RPC binding from its body, which is then sent on unchanged. */
import { isUtf8 } from "node:buffer";
import type { RoutedExchange } from "../exchange/exchange.ts";
import { NOT_JSON, skipSpace, skipValue } from "../mcp/message/scan.ts";
import { eachMember, isLike, readString, stringAt, wholeOf } from "../mcp/message/spans.ts";
import { isJsonType } from "./card-reply.ts";

/** The method where none can be read, and that of a batch. */
const UNKNOWN_METHOD = "unknown";
const BATCH_METHOD = "batch";

export interface ReadMethod {
  readonly method: string;
  /** Why the method could not be read. */
  readonly fault?: string;
}

const OPEN_BRACKET = 0x5b;
/** A name of reasonable length without control characters. */
const METHOD_NAME = /^[^\p{Cc}]{1,128}$/u;

export async function readMethod(exchange: RoutedExchange): Promise<ReadMethod> {
  if (!isJsonType(exchange.requestHeaders)) return unknown("the body is not JSON");
  const bytes = await exchange.bufferRequestBody(exchange.requestLimitBytes);
  if (bytes === undefined) return unknown("the body is larger than the buffer limit");
  const start = skipSpace(bytes, 0);
  if (!isUtf8(bytes) || skipValue(bytes, start) <= NOT_JSON) return unknown("the body is not JSON");
  if (bytes[start] === OPEN_BRACKET) return { method: BATCH_METHOD };
  const members = [...eachMember(bytes, wholeOf(bytes))].filter(({ name }) =>
    isLike(readString(bytes, name), "method"),
  );
  // Parsers differ in which of two they take, and some ignore the case of names.
  if (members.length > 1) return unknown("the body names its method twice");
  const method = stringAt(bytes, wholeOf(bytes), "method");
  if (method === undefined) return unknown("the body names no method");
  return METHOD_NAME.test(method) ? { method } : unknown("the name of the method is too long or unprintable");
}

function unknown(fault: string): ReadMethod {
  return { method: UNKNOWN_METHOD, fault };
}
