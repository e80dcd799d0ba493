/**
 * The operation `Detect`: body and answer stay as they are, but for configured fields of JSON bodies. Model, streaming and
 * usage are read where they can be recognised, for telemetry and budgets. No guards run.
 */
import { pathOf } from "../../../lib/network/request-target.ts";
import { collect } from "../../exchange/collect.ts";
import type { Body } from "../../exchange/body.ts";
import { ProxyError } from "../../exchange/errors.ts";
import type { Reply } from "../../exchange/exchange.ts";
import type { UpstreamResponse } from "../../upstream/upstream.ts";
import { decodePathText } from "../shared/model-name.ts";
import { readNativePath } from "../shared/native-path.ts";
import { parseObject, stringOf, type JsonObject } from "../shared/json.ts";
import { openLedger, type Ledger } from "../call/ledger.ts";
import { sendCall } from "../call/send.ts";
import { scanStream } from "../stream/scanned-stream.ts";
import { framingOf } from "../stream/framing.ts";
import { detectFacts, learnDetected } from "./detected-facts.ts";
import { forwardResponse, type Operation, type OperationContext } from "./operation.ts";

/** Ends of paths whose answers are streams, whatever the body says. */
const STREAMING = /:stream(?:RawPredict|GenerateContent)$|\/(?:invoke-with-response-stream|converse-stream)$/;
/** Paths of the native API of Bedrock, which name the model. */
const BEDROCK = /\/model\/([^/]+)\/(?:converse(?:-stream)?|invoke(?:-with-response-stream)?)$/;
const MAX_MODEL = 256;

export const detect: Operation = async (context) => {
  const { endpoint, exchange, out, upstream, catalogs } = context;
  const { body, json } = await readBody(context);
  const path = pathOf(out?.path ?? exchange.target);
  const requestModel = (stringOf(json?.["model"]) ?? modelInPath(path) ?? "").slice(0, MAX_MODEL);
  const streaming = json?.["stream"] === true || STREAMING.test(path);
  const named = requestModel === "" ? {} : { requestModel };
  const facts = { ...named, provider: endpoint.node.identity, streaming };
  const bodyBytes = (): number => (Buffer.isBuffer(body) ? body.length : 0);
  const ledger = await openLedger(exchange, facts, bodyBytes, catalogs.of(exchange.listener));
  const read = (answer: UpstreamResponse) => readAnswer(answer, ledger, context);
  return sendCall(
    {
      endpoint,
      to: { wire: "Detect", model: requestModel, streaming },
      operation: "detect",
      out,
      method: out?.method ?? exchange.method,
      body,
      upgrade: exchange.upgrade,
      ledger,
      read,
    },
    exchange,
    upstream,
  );
};

function modelInPath(path: string): string | undefined {
  const name = BEDROCK.exec(path)?.[1];
  return name === undefined ? readNativePath(path)?.model : decodePathText(name);
}

/**
 * Holds a body of JSON to read it, and writes the configured fields into an object; bodies of other types flow, and what
 * cannot be read goes on as it came.
 */
async function readBody({
  endpoint,
  exchange,
  out,
  given,
}: OperationContext): Promise<{ body: Body; json?: JsonObject | undefined }> {
  const type = (out?.headers ?? exchange.requestHeaders).get("content-type") ?? "";
  const isJson = type.toLowerCase().includes("json");
  if (!isJson && endpoint.auth?.sign === undefined) return { body: given };
  const isChanged = Buffer.isBuffer(given) || given === null;
  const held = isChanged ? given : await exchange.bufferRequestBody(exchange.requestLimitBytes);
  if (held === undefined) throw new ProxyError("body_too_large");
  const json = held === null ? undefined : parseObject(held);
  const { fields } = endpoint.policies;
  if (!isJson || json === undefined || fields === undefined) return { body: held, json };
  fields.apply(json, exchange);
  return { body: Buffer.from(JSON.stringify(json)), json };
}

async function readAnswer(answer: UpstreamResponse, ledger: Ledger, { exchange }: OperationContext): Promise<Reply> {
  const { status, headers, body } = answer;
  const isCoded = (headers.get("content-encoding") ?? "identity").toLowerCase() !== "identity";
  if (status >= 400 || body === null || isCoded) {
    ledger.settle(status >= 400 ? "failed" : "partial");
    return forwardResponse(answer, exchange);
  }
  const type = headers.get("content-type") ?? "";
  const framing = framingOf(type);
  const maxEventBytes = exchange.responseLimitBytes;
  if (framing !== undefined) {
    const format = { stream: learnDetected };
    const scanned = scanStream(body, { format, ledger, maxEventBytes, framing, hidesUsage: false });
    return forwardResponse({ ...answer, body: scanned }, exchange);
  }
  if (!type.toLowerCase().includes("json")) {
    ledger.settle("complete");
    return forwardResponse(answer, exchange);
  }
  const bytes = await collect(body, exchange.responseLimitBytes);
  if (bytes === undefined) throw new ProxyError("response_too_large");
  const object = parseObject(bytes);
  if (object !== undefined) ledger.record(detectFacts(object));
  ledger.settle(object === undefined ? "partial" : "complete");
  return { ...forwardResponse({ ...answer, body: null }, exchange), body: bytes };
}
