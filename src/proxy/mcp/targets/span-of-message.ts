/** The name and the attributes of the span of one message to a target. */
import type { Attribute } from "../../../telemetry/attributes.ts";
import type { TargetRequest } from "./send-call.ts";
import type { TargetMessage } from "./target.ts";

export function spanOf(target: string, { message: { kind, method }, name }: TargetMessage): TargetRequest["span"] {
  if (method === undefined || kind === "result" || kind === "error")
    return { name: `response ${target}`, attributes: [["mcp.target", target]] };
  const isTool = method === "tools/call" && name !== undefined;
  const attributes: Attribute[] = [
    ["mcp.target", target],
    ["mcp.method.name", method],
  ];
  if (isTool) attributes.push(["gen_ai.tool.name", name]);
  return { name: `${method} ${target}${isTool ? `_${name}` : ""}`, attributes };
}
