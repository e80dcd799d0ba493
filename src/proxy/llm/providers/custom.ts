/** The provider `custom`: any endpoint whose configuration lists one of the known formats. */
import type { FormatName } from "../formats/format.ts";
import { standardPath, type Provider } from "./provider.ts";

/** Order of preference of formats for a chat completions client; the configured order has no meaning. */
const PREFERENCE: readonly FormatName[] = ["Completions", "Messages"];

export const custom: Provider = {
  defaultHost: "",
  supports: ({ formats }) => PREFERENCE.filter((name) => formats.some(({ type }) => type === name)),
  url(node, format) {
    const configured = node.formats.find(({ type }) => type === format)?.path ?? "";
    return configured === "" ? standardPath(node, format) : configured;
  },
  headers: () => undefined,
  quirks: () => undefined,
};
