/** `custom`: any endpoint that speaks one of the known formats, listed in its configuration. */
import type { FormatName } from "../formats/format.ts";
import { standardPath, type Provider } from "./provider.ts";

/** The order in which formats are tried for a chat completions client; the configured order means nothing. */
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
