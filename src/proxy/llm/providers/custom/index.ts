/** The provider `custom`: any endpoint whose configuration lists its formats. Their order has no meaning. */
import type { Provider as ProviderNode } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { FormatName } from "../../formats/chat-format.ts";
import { setApiVersion } from "../anthropic/index.ts";
import type { Provider, ProviderOperation } from "../provider.ts";
import { standardPath, withModel } from "../shared/standard-path.ts";

const FORMATS: readonly FormatName[] = ["Completions", "Messages", "Responses", "Embeddings", "MessagesTokenCount"];

export const custom: Provider = {
  defaultHost: () => "",
  formats: (node) => FORMATS.filter((name) => lists(node, name)),
  operations(node) {
    const operations: ProviderOperation[] = ["Models"];
    if (lists(node, "Realtime")) operations.push("Realtime");
    if (lists(node, "Responses")) operations.push("ResponsesSocket");
    return operations;
  },
  path(node, call) {
    const configured = node.formats.find(({ type }) => type === call.wire)?.path ?? "";
    return configured === "" ? standardPath(node, call) : withModel(configured, call);
  },
  headers(headers, { wire }) {
    if (wire === "Messages") setApiVersion(headers);
  },
};

function lists({ formats }: ProviderNode, name: string): boolean {
  return formats.some(({ type }) => type === name);
}
