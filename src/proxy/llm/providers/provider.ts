/** The shape of a provider family: what it speaks, where its endpoints are, and what its requests must look like. */
import type { Provider as ProviderNode } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { HeaderList } from "../../../lib/header-list.ts";
import type { FormatName } from "../formats/format.ts";
import type { JsonObject } from "../json.ts";

export interface Provider {
  /** Taken when the configuration names no host; "" when it has to. */
  readonly defaultHost: string;
  /** Formats that the provider takes, the best first. */
  supports(node: ProviderNode): readonly FormatName[];
  /** Path of the endpoint of a format, without the client's query. */
  url(node: ProviderNode, format: FormatName): string;
  /**
   * Last edit of the headers, after the credential was placed.
   * @param credentialHeader lower-case name of an explicitly configured credential header, "" for another explicit
   *   place, undefined when the place was left to the provider
   */
  headers(headers: HeaderList, credentialHeader: string | undefined): void;
  /** Rewrites of a body in a format of this provider that depend on the model. */
  quirks(body: JsonObject): void;
}

const OPERATION: Readonly<Record<FormatName, string>> = { Completions: "/chat/completions", Messages: "/messages" };

/** `/v1/chat/completions` and the like, on the configured prefix. */
export function standardPath(node: ProviderNode, format: FormatName): string {
  const base = node.pathPrefix === "" ? "/v1" : node.pathPrefix.replace(/\/+$/, "");
  return base + OPERATION[format];
}
