/** Describes a finished message of an MCP client, for log fields and the metric of messages. */
import type { McpSample } from "../../../telemetry/metrics.ts";
import type { McpCallInfo } from "../../exchange/mcp-call-info.ts";

export class McpInfo {
  readonly call: McpCallInfo;

  constructor(call: McpCallInfo) {
    this.call = call;
  }

  /** Returns the name of the item if it is of this type. */
  nameOf(type: string): string | undefined {
    return this.call.itemType === type ? this.call.item?.name : undefined;
  }

  get sample(): McpSample {
    const { method, itemType, item } = this.call;
    // URIs and ids of tasks are without number, so only names of tools and prompts become labels.
    return { method, itemType, target: item?.target, name: this.nameOf("tool") ?? this.nameOf("prompt") };
  }
}
