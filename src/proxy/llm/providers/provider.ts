/**
 * The interface of a provider: its addresses, its formats, and what is peculiar to its requests. index.ts has the table
 * of providers.
 */
import type { BackendAuth, Provider as ProviderNode } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { HeaderList } from "../../../lib/header-list.ts";
import type { SigningScope } from "../../upstream/auth.ts";
import type { Losses } from "../conversation/losses.ts";
import type { FormatName } from "../formats/chat-format.ts";
import type { JsonObject } from "../shared/json.ts";
import type { OperationForm } from "../shared/operation-form.ts";

/** What goes to a provider: a format, or an operation that is no chat. */
export type Wire = FormatName | "Detect" | "GeminiModels" | "Models" | "Passthrough" | "Realtime";

/**
 * Operations beside chat that a provider may have: `ResponsesSocket` is Responses over a WebSocket, `GeminiModels` a list
 * of models in the form of Google.
 */
export type ProviderOperation = "GeminiModels" | "Models" | "Realtime" | "ResponsesSocket";

/** What a provider knows of a call. */
export interface ProviderCall {
  readonly wire: Wire;
  /** Name of the model after aliases; it is safe to stand in a path once it is percent-encoded. */
  readonly model: string;
  readonly streaming: boolean;
  /** Tags of the model in the catalog; absent in operations that do not look them up. */
  readonly tags?: ReadonlySet<string>;
}

/** What a provider knows of a call when it edits the headers. */
export interface HeaderCall extends ProviderCall {
  /**
   * Lower-case name of the configured credential header; "" for another configured location; undefined when no location
   * is configured.
   */
  readonly credentialHeader: string | undefined;
  /** Whether the provider is called at its own address without a configured credential, so that its default applies. */
  readonly usesDefaultCredential: boolean;
}

/** What a provider knows of a call when it adjusts the body. */
interface BodyCall extends ProviderCall {
  /** Headers of the client. */
  readonly headers: HeaderList;
  readonly losses: Losses;
}

export interface Provider {
  /** Returns the host when the configuration names none; "" when it has to name one. */
  defaultHost(node: ProviderNode): string;
  /** Returns the port at the default host; without this member it is 443. */
  defaultPort?(node: ProviderNode): number;
  /** Returns the host of a call, where that is not always the default. A configured host replaces it. */
  host?(node: ProviderNode, call: ProviderCall): string;
  /**
   * Returns the chat formats that the provider accepts for a model, in any order.
   * @param tags of the model in the catalog
   */
  formats(node: ProviderNode, model: string, tags: ReadonlySet<string>): readonly FormatName[];
  /** Returns the provider's own form of an operation; undefined where it takes the form of the client. */
  ownForm?(call: ProviderCall, node: ProviderNode): OperationForm | undefined;
  /** Returns the operations beside chat that it has in the form of OpenAI; none without this member. */
  operations?(node: ProviderNode): readonly ProviderOperation[];
  /** Returns path and query of a call, without the client's query. Of a list of models, `model` is the entry or "". */
  path(node: ProviderNode, call: ProviderCall): string;
  /** Matches parameters in the queries of clients that the provider refuses; all others are passed on. */
  readonly refusedParameters?: RegExp;
  /**
   * Edits the headers last, after the credential was placed.
   * @throws ProxyError credential_unavailable
   */
  headers?(headers: HeaderList, call: HeaderCall, node: ProviderNode): void;
  /** Adjusts the printed body for peculiarities of the provider and of the model. */
  adjustBody?(body: JsonObject, call: BodyCall, node: ProviderNode): void;
  /** What authenticates requests to the provider's own address where no `auth` is configured. */
  readonly defaultAuth?: BackendAuth;
  /** Returns what signatures are made for, where the configuration does not say. */
  signingScope?(node: ProviderNode, call: ProviderCall): SigningScope;
}
