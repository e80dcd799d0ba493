/**
 * Tells whether a target has an item, by what it answers. Calls and subscriptions need it where rules are configured:
 * clients could otherwise tell hidden items, which are refused here, from those that do not exist.
 */
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import { readMessage, type Message } from "../message/message.ts";
import { findMember, textOf } from "../message/spans.ts";
import type { ItemKind } from "../methods.ts";
import type { Target } from "../targets/target.ts";
import type { ClientRequest } from "./multiplexer.ts";
import type { OwnedName } from "./naming/names.ts";
import { metaOf, sendTo } from "./server.ts";

const ABSENT: ReadonlySet<string> = new Set([ERROR_CODES.invalidParams, ERROR_CODES.resourceNotFound].map(String));

/** Tools fail in many ways, some of them in results; of other items the code tells. */
export function mayMeanAbsent({ kind, bytes, payload }: Message, item: ItemKind): boolean {
  if (payload === undefined) return false;
  if (item === "tool" && kind === "error") return true;
  const found = findMember(bytes, payload, kind === "error" ? "code" : "isError");
  const text = found === undefined ? "" : textOf(bytes, found);
  return kind === "error" ? ABSENT.has(text) : item === "tool" && text === "true";
}

/**
 * Reads a resource that a client wants to be told of: servers accept subscriptions to resources that they do not have.
 * @throws McpError, ProxyError
 */
export async function isAbsentResource(request: ClientRequest, { target, name }: OwnedName<Target>): Promise<boolean> {
  const meta = metaOf(request);
  const members = [`"uri":${JSON.stringify(name)}`, ...(meta === undefined ? [] : [`"_meta":${meta}`])];
  const text = `{"jsonrpc":"2.0","id":"gw-resolve-1","method":"resources/read","params":{${members.join(",")}}}`;
  const read = readMessage(Buffer.from(text));
  if ("code" in read) throw new McpError(ERROR_CODES.internal, "internal error", { detail: read.reason });
  const answer = await sendTo(target, read, request, name);
  const refusal = answer.body && readMessage(answer.body);
  if (refusal !== undefined && "kind" in refusal && mayMeanAbsent(refusal, "resource")) return true;
  let isAbsent = false;
  for await (const message of answer.messages)
    if (message.kind === "error" && mayMeanAbsent(message, "resource")) isAbsent = true;
  return isAbsent;
}
