/** Says in a few words what an event of a traced request is about; the whole message is shown beside it. */
import { isRecord, type TraceEvent } from "./trace.ts";

export interface EventSummary {
  readonly title: string;
  readonly detail: string;
}

type Message = TraceEvent["message"];
type Describe = (message: Message) => EventSummary;

/** A row for each type of event; another type is shown by its name. */
const SUMMARIES: Readonly<Record<string, Describe | undefined>> = {
  requestStarted: () => ({ title: "Request received", detail: "" }),
  requestSnapshot: ({ stage }) => ({ title: "Request", detail: textOf(stage) }),
  responseSnapshot: ({ stage }) => ({ title: "Response", detail: textOf(stage) }),
  bodySnapshot: ({ stage }) => ({ title: "Body", detail: textOf(stage) }),
  cel: ({ expr, result }) => ({ title: "Expression", detail: `${textOf(expr)} → ${textOf(result)}` }),
  routeSelection: ({ selectedRoute }) => ({ title: "Route", detail: routeText(selectedRoute) }),
  policySelection: ({ phase, effectivePolicy }) => ({
    title: "Policies",
    detail: `${textOf(phase)}: ${listOf(effectivePolicy, ({ policy }) => textOf(policy)) || "none"}`,
  }),
  policy: ({ kind, result }) => ({ title: `Policy ${textOf(kind)}`, detail: policyResult(result) }),
  policyEvent: ({ kind, details }) => ({ title: `Policy ${textOf(kind)}`, detail: textOf(details) }),
  authorizationResult: ({ result }) => ({ title: "Authorization", detail: textOf(result) }),
  traceSampling: ({ decision }) => ({
    title: "Trace sampling",
    detail: decision === true ? "recorded" : "not recorded",
  }),
  backendCallStart: ({ target }) => ({ title: "Call begins", detail: textOf(target) }),
  backendCallResult: ({ status, error }) => ({ title: "Backend call", detail: words(status, error) }),
  llmRouteResolved: ({ provider, routeType }) => ({ title: "LLM route", detail: words(provider, routeType) }),
  llmRequestDetected: ({ provider, requestModel, inputFormat }) => ({
    title: "LLM request",
    detail: words(requestModel, inputFormat, provider),
  }),
  llmStreamingTranslation: ({ provider, streamFormat }) => ({
    title: "LLM stream",
    detail: words(provider, streamFormat),
  }),
  endpointPick: ({ result, endpoints, error }) => ({
    title: "Endpoint picker",
    detail: words(result, ...(Array.isArray(endpoints) ? endpoints : []), error),
  }),
  endpointSelection: ({ chosen, cause }) => ({ title: "Endpoint", detail: words(chosen, cause) }),
  mcpFanout: ({ targets }) => ({ title: "MCP targets", detail: listOf(targets, targetText) }),
  requestFinished: ({ status, error, dropped }) => ({
    title: "Response sent",
    detail: words(status, error, dropped === undefined ? "" : `${textOf(dropped)} events were lost`),
  }),
};

export function describeEvent(message: Message): EventSummary {
  const summary = Object.hasOwn(SUMMARIES, message.type) ? SUMMARIES[message.type]?.(message) : undefined;
  const { title, detail } = summary ?? { title: message.type, detail: "" };
  return { title, detail: detail.length > MAX_DETAIL ? `${detail.slice(0, MAX_DETAIL)}…` : detail };
}

const MAX_DETAIL = 160;

function policyResult(result: unknown): string {
  if (!isRecord(result)) return textOf(result);
  if (result["type"] === "skip") return `skipped: ${textOf(result["reason"])}`;
  const { details } = result;
  return isRecord(details) ? words(details["outcome"], details["status"], details["error"]) : textOf(details);
}

function routeText(selected: unknown): string {
  if (selected === null || selected === undefined) return "none matches";
  return isRecord(selected) ? `${textOf(selected["route"])} rule ${textOf(selected["rule"])}` : textOf(selected);
}

/** Prints the records of a list, whatever else is in it. */
function listOf(value: unknown, print: (record: Readonly<Record<string, unknown>>) => string): string {
  return Array.isArray(value) ? value.filter(isRecord).map(print).join(", ") : "";
}

/** Returns the outcome at an MCP server, with how many items of a list it has and how many the client sees. */
function targetText({ target, outcome, itemsBefore, itemsAfter }: Readonly<Record<string, unknown>>): string {
  const items = itemsBefore === undefined ? "" : ` (${textOf(itemsAfter)} of ${textOf(itemsBefore)} items)`;
  return `${textOf(target)} ${textOf(outcome)}${items}`;
}

function words(...values: readonly unknown[]): string {
  return values
    .map(textOf)
    .filter((text) => text !== "")
    .join(", ");
}

/** Returns a text as it is, and anything else as JSON; nothing for a value that is not there. */
function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
