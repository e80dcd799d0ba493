/**
 * Turns the response of a provider into the client's reply: decodes its content coding, reads model and usage into the
 * ledger, and translates it when client and provider speak different formats. The LLM handler uses it.
 */
import { ProxyError } from "../errors.ts";
import type { UpstreamResponse } from "../upstream/upstream.ts";
import { HeaderList } from "../../lib/header-list.ts";
import type { BodyStream } from "../pipeline/body.ts";
import { collect } from "../pipeline/collect.ts";
import type { Reply } from "../pipeline/exchange.ts";
import { codingOf, unpackStream } from "./content-coding.ts";
import type { Converter } from "./convert/converter.ts";
import type { Format } from "./formats/format.ts";
import { parseObject, type JsonObject } from "./json.ts";
import { scanStream, translateStream } from "./stream/bodies.ts";
import type { Ledger } from "./usage.ts";

export interface AnswerContext {
  readonly format: Format;
  readonly converter: Converter | undefined;
  readonly ledger: Ledger;
  readonly limitBytes: number;
}

/** @throws ProxyError response_invalid, response_too_large, upstream_broken */
export async function readAnswer(response: UpstreamResponse, context: AnswerContext): Promise<Reply> {
  const headers = response.headers.clone();
  const reply = (body: Reply["body"]): Reply => ({ status: response.status, headers, body, upstream: true });
  const { converter, ledger } = context;
  const coding = codingOf(headers.getAll("content-encoding").join(","));
  if (response.body === null || (coding === undefined && converter === undefined)) {
    ledger.settle();
    return reply(response.body);
  }
  if (coding === undefined) {
    response.body.destroy();
    throw new ProxyError("response_invalid", { detail: "the answer has an unknown content coding" });
  }
  const body = coding === null ? response.body : unpackStream(response.body, coding);
  if (coding !== null || converter !== undefined) forgetBody(headers);
  if (response.status >= 400) return reply(await readError(body, headers, response.status, context));
  const type = (headers.get("content-type") ?? "").toLowerCase();
  if (type.startsWith("text/event-stream")) return reply(readStream(body, context));
  if (converter === undefined && !type.includes("json")) {
    ledger.settle();
    return reply(body);
  }
  return reply(await readWhole(body, headers, context));
}

function readStream(body: BodyStream, { format, converter, ledger, limitBytes }: AnswerContext): BodyStream {
  const stream = { format, ledger, maxEventBytes: limitBytes };
  return converter === undefined
    ? scanStream(body, stream)
    : translateStream(body, stream, converter.stream(nowSeconds()));
}

async function readError(
  body: BodyStream,
  headers: HeaderList,
  status: number,
  { converter, ledger, limitBytes }: AnswerContext,
): Promise<Reply["body"]> {
  ledger.settle();
  if (converter === undefined) return body;
  const bytes = await collect(body, limitBytes);
  if (bytes === undefined) throw new ProxyError("response_too_large");
  return printed(converter.error(bytes, status), headers);
}

async function readWhole(body: BodyStream, headers: HeaderList, context: AnswerContext): Promise<Buffer> {
  const { format, converter, ledger, limitBytes } = context;
  const bytes = await collect(body, limitBytes);
  if (bytes === undefined) throw new ProxyError("response_too_large");
  const answer = parseObject(bytes);
  if (answer !== undefined) ledger.record(format.usage(answer));
  ledger.settle();
  if (converter === undefined) return bytes;
  if (answer === undefined) throw new ProxyError("response_invalid", { detail: "the answer is not a JSON object" });
  return printed(converter.response(answer, nowSeconds()), headers);
}

function printed(answer: JsonObject, headers: HeaderList): Buffer {
  headers.set("content-type", "application/json");
  return Buffer.from(JSON.stringify(answer));
}

/** Removes the fields that describe a body which is not sent as it came: length, coding, digests and entity tag. */
function forgetBody(headers: HeaderList): void {
  for (const name of ["content-length", "content-encoding", "content-md5", "content-digest", "repr-digest", "digest"])
    headers.remove(name);
  headers.remove("etag");
}

function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}
