/** The provider `custom`: any endpoint whose configuration lists its formats. Their order has no meaning. */
import type { FormatName } from "../../formats/chat-format.ts";
import type { Provider } from "../provider.ts";
import { standardPath } from "../shared/standard-path.ts";

const CHAT_FORMATS: readonly FormatName[] = ["Completions", "Messages", "Responses", "Embeddings"];

export const custom: Provider = {
  defaultHost: () => "",
  formats: ({ formats }) => CHAT_FORMATS.filter((name) => formats.some(({ type }) => type === name)),
  path(node, call) {
    const configured = node.formats.find(({ type }) => type === call.wire)?.path ?? "";
    return configured === "" ? standardPath(node, call) : configured;
  },
};
