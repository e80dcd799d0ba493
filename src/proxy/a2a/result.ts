/** Reads from one answer of an agent what reports show: outcome, kind of result, state of the task, context. */
import type { AgentResult } from "../exchange/agent-call-info.ts";
import { eachMember, findMember, isNamed, readString, stringAt, textOf, type Span } from "../mcp/message/spans.ts";

export const NO_RESULT: AgentResult = {
  outcome: "unknown",
  errorCode: undefined,
  kind: undefined,
  state: undefined,
  contextId: undefined,
};

/** Members of a result that hold one of its alternatives, with the kind that 0.3 gives it. */
const ALTERNATIVES: readonly (readonly [member: string, kind: string])[] = [
  ["task", "task"],
  ["message", "message"],
  ["statusUpdate", "status-update"],
  ["artifactUpdate", "artifact-update"],
];

/**
 * @param status of an answer in the HTTP+JSON binding, whose body is the result; undefined for JSON-RPC
 */
export function readResult(bytes: Buffer, answer: Span, status: number | undefined): AgentResult {
  const error = findMember(bytes, answer, "error");
  if (error !== undefined || (status !== undefined && status >= 400))
    return { ...NO_RESULT, outcome: "error", errorCode: error === undefined ? undefined : codeOf(bytes, error) };
  const result = status === undefined ? findMember(bytes, answer, "result") : answer;
  return result === undefined ? NO_RESULT : { ...NO_RESULT, outcome: "success", ...describe(bytes, result) };
}

function describe(bytes: Buffer, result: Span): Pick<AgentResult, "kind" | "state" | "contextId"> {
  let own: Span = result;
  let kind: string | undefined;
  for (const member of eachMember(bytes, result)) {
    if (isNamed(bytes, member, "kind")) kind = readString(bytes, member.value);
    const found = ALTERNATIVES.find(([name]) => isNamed(bytes, member, name));
    if (found === undefined) continue;
    own = member.value;
    kind ??= found[1];
  }
  return {
    kind: short(kind),
    state: short(stringAt(bytes, own, "status", "state")),
    contextId: short(stringAt(bytes, own, "contextId")),
  };
}

/** Codes of JSON-RPC are integers; another value has no place in a report. */
function codeOf(bytes: Buffer, error: Span): number | undefined {
  const code = findMember(bytes, error, "code");
  const value = code === undefined ? Number.NaN : Number(textOf(bytes, code));
  return Number.isSafeInteger(value) ? value : undefined;
}

const LONGEST = 256;

function short(text: string | undefined): string | undefined {
  return text?.slice(0, LONGEST);
}
