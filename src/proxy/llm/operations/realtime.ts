/**
 * The operation `Realtime`, and Responses over a WebSocket: an upgrade that is relayed byte for byte, unless guards look
 * at streams (guards/session.ts). The text messages of the provider are read for their usage, which is summed over the
 * session.
 */
import type { Duplex } from "node:stream";
import { ProxyError } from "../../exchange/errors.ts";
import type { UpstreamResponse } from "../../upstream/upstream.ts";
import { guardSession } from "../guards/session.ts";
import { learnResponse } from "../formats/responses/usage.ts";
import { objectOf, parseObject, type JsonObject } from "../shared/json.ts";
import { openLedger, type Ledger } from "../call/ledger.ts";
import { readModelName } from "../shared/model-name.ts";
import type { ProviderCall, ProviderOperation } from "../providers/provider.ts";
import { invalidRequest } from "../shared/request-fields.ts";
import { sendCall } from "../call/send.ts";
import { ObservedDuplex } from "../stream/observed-duplex.ts";
import { TextMessages } from "../stream/text-messages.ts";
import type { Facts, Usage } from "../shared/usage.ts";
import { forwardResponse, type Operation, type OperationContext } from "./operation.ts";

/** Longest message that is read; others are only relayed. */
const MAX_MESSAGE_BYTES = 2 * 1024 * 1024;

export const relayRealtime: Operation = async (context) => {
  requireOperation(context, "Realtime", new ProxyError("llm_conversion_unsupported"));
  const { endpoint, exchange, out } = context;
  if (exchange.upgrade === undefined) throw invalidRequest("a realtime session begins with an upgrade to WebSocket");
  const { node, policies } = endpoint;
  const [, query] = (out?.path ?? exchange.target).split("?", 2);
  const asked = node.model === "" ? readModelName(new URLSearchParams(query).get("model")) : node.model;
  if (asked === undefined || asked === "")
    throw new ProxyError("llm_model_missing", {
      text: "failed to process LLM request: missing query parameter: model not specified",
    });
  const model = policies.renameModel?.(asked) ?? asked;
  return relay(context, { wire: "Realtime", model, streaming: true });
};

/**
 * Clients fall back to HTTP at once on 426, and on no other status. They have to where the configuration decides on the
 * model or on what is said, because the messages of a client are not rewritten, and where guards look at requests and
 * not at streams, because requests would get around them.
 */
export const relayResponses: Operation = (context) => {
  const { node, guards, policies } = context.endpoint;
  const { fields, renameModel, addPrompt } = policies;
  const decides = [fields, renameModel, addPrompt].some((each) => each !== undefined) || node.model !== "";
  const unsupported = new ProxyError("llm_upgrade_unsupported");
  if (decides || guards?.streaming === false) throw unsupported;
  requireOperation(context, "ResponsesSocket", unsupported);
  return relay(context, { wire: "Responses", model: "", streaming: true });
};

function requireOperation({ endpoint }: OperationContext, name: ProviderOperation, otherwise: ProxyError): void {
  if (endpoint.provider.operations?.(endpoint.node).includes(name) !== true) throw otherwise;
}

async function relay({ endpoint, exchange, out, upstream, catalogs }: OperationContext, to: ProviderCall) {
  const facts = { requestModel: to.model, provider: endpoint.node.identity, streaming: true };
  const ledger = await openLedger(exchange, facts, () => 0, catalogs.of(exchange.listener));
  const read = (answer: UpstreamResponse) => {
    const { tunnel } = answer;
    if (tunnel === undefined) ledger.settle("failed");
    if (tunnel === undefined) return forwardResponse(answer, exchange);
    const onMessage = readUsage(ledger);
    const { guards } = endpoint;
    const isRealtime = to.wire === "Realtime";
    const stream =
      guards?.streaming === true
        ? guardSession(tunnel.stream, { guards, exchange, headers: answer.headers, isRealtime, onMessage })
        : observe(tunnel.stream, onMessage);
    return forwardResponse({ ...answer, tunnel: { ...tunnel, stream } }, exchange);
  };
  const { method, upgrade } = exchange;
  return sendCall(
    { endpoint, to, operation: "realtime", out, method, body: null, upgrade, ledger, read },
    exchange,
    upstream,
  );
}

type OnMessage = (text: Buffer) => void;

function observe(stream: Duplex, onMessage: OnMessage): Duplex {
  const messages = new TextMessages(MAX_MESSAGE_BYTES, onMessage);
  return new ObservedDuplex(stream, (chunk) => messages.push(chunk));
}

/** Returns the reader of the provider's messages that reports their usage. */
function readUsage(ledger: Ledger): OnMessage {
  const session: Facts = {};
  return (text) => {
    ledger.flowing();
    const response = responseIn(text);
    if (response === undefined) return;
    const one: Facts = {};
    learnResponse(response, one);
    if (one.model !== undefined) session.model = one.model;
    if (one.serviceTier !== undefined) session.serviceTier = one.serviceTier;
    if (one.usage !== undefined) session.usage = sum(session.usage, one.usage);
    ledger.record({ ...session });
  };
}

const FINAL_EVENTS: ReadonlySet<unknown> = new Set([
  "response.done",
  "response.completed",
  "response.incomplete",
  "response.failed",
]);

/** Returns the response that a message completes. Other messages are not parsed. */
function responseIn(text: Buffer): JsonObject | undefined {
  if (!text.includes('"usage"')) return undefined;
  const event = parseObject(text);
  return FINAL_EVENTS.has(event?.["type"]) ? objectOf(event?.["response"]) : undefined;
}

function sum(before: Usage | undefined, usage: Usage): Usage {
  const total: Usage = { ...usage };
  // Object.entries loses the names of the members.
  for (const [name, count] of Object.entries(before ?? {}) as [keyof Usage, number][])
    total[name] = (total[name] ?? 0) + count;
  return total;
}
