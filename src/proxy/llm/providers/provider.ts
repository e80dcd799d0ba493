/**
 * The interface of a provider: its formats, its addresses and the form of its requests. endpoint.ts has the table of
 * them.
 */
import type { Provider as ProviderNode } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { HeaderList } from "../../../lib/header-list.ts";
import type { FormatName } from "../formats/format.ts";
import type { JsonObject } from "../json.ts";

export interface Provider {
  /** Host when the configuration names none; "" when the configuration has to name one. */
  readonly defaultHost: string;
  /** Returns the formats that the provider accepts, the preferred one first. */
  supports(node: ProviderNode): readonly FormatName[];
  /** Returns the path for a format, without the client's query. */
  url(node: ProviderNode, format: FormatName): string;
  /**
   * Edits the headers last, after the credential was placed.
   * @param credentialHeader lower-case name of the configured credential header; "" for another configured location;
   *   undefined when no location is configured
   */
  headers(headers: HeaderList, credentialHeader: string | undefined): void;
  /** Adjusts the body for peculiarities of the model. */
  quirks(body: JsonObject): void;
}

const OPERATION: Readonly<Record<FormatName, string>> = { Completions: "/chat/completions", Messages: "/messages" };

/** Returns the usual path of a format under the configured prefix, such as `/v1/chat/completions`. */
export function standardPath(node: ProviderNode, format: FormatName): string {
  const base = node.pathPrefix === "" ? "/v1" : node.pathPrefix.replace(/\/+$/, "");
  return base + OPERATION[format];
}
