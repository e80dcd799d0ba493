/**
 * A chat request in neutral terms: the hub between the format of a client and the format of a provider. The client's
 * format reads a body into it, the provider's format prints it. It is a superset of all formats, so that a reader and a
 * printer for each of them are enough. A request whose client and provider speak one format never becomes a
 * conversation.
 *
 * What only one vendor knows stays in `vendor` parts and `VendorFields`. It is printed again for a target of the same
 * vendor; for others its name goes to the `Losses`.
 */
import type { JsonObject } from "../shared/json.ts";

/** Families of formats that share vocabulary: Completions and Responses; Messages and Converse; Gemini. */
export type Vendor = "openai" | "anthropic" | "google";

export interface Conversation {
  /** Name of the model for the provider; a printer writes it where its format has it. */
  readonly model: string;
  readonly streaming: boolean;
  /** Instructions of the system and of the developer, in order. No text is blank. */
  readonly system: SystemText[];
  /** Turns alternate between the roles: `addParts` merges neighbours. */
  readonly turns: Turn[];
  readonly tools: Tool[];
  toolChoice?: ToolChoice;
  /** False when the model may make one call at most. */
  parallelCalls?: boolean;
  readonly sampling: Sampling;
  reasoning?: ReasoningSettings;
  output?: OutputFormat;
  /** Identifier of the end user. */
  user?: string;
  /** Top-level fields of the client's body that have no neutral counterpart. */
  readonly extra: VendorFields;
}

export interface VendorFields {
  readonly vendor: Vendor;
  readonly fields: JsonObject;
}

export interface SystemText {
  readonly role: "system" | "developer";
  readonly text: string;
  cache?: CacheMark;
}

export interface Turn {
  readonly role: "user" | "assistant";
  readonly parts: Part[];
}

export type Part =
  | TextPart
  | ImagePart
  | FilePart
  | AudioPart
  | RefusalPart
  | ReasoningPart
  | RedactedPart
  | CallPart
  | ResultPart
  | VendorPart;

/** Marks the end of a prefix that the provider should cache. */
export interface CacheMark {
  /** Time to live such as "5m" or "1h"; undefined for the provider's default. */
  readonly ttl?: string;
}

/** Members that any part may have. */
interface Marked {
  /** Path in the client's body, for errors of printers; absent in answers. */
  readonly path?: string;
  cache?: CacheMark;
}

export interface TextPart extends Marked {
  readonly kind: "text";
  readonly text: string;
  readonly citations?: readonly Citation[];
  /** Gemini signs texts too. */
  readonly signature?: Signature;
}

/** Bytes, or where they are. */
export type Source =
  | { readonly kind: "data"; readonly mediaType: string; /** Base64. */ readonly data: string }
  | { readonly kind: "url"; readonly url: string; readonly mediaType?: string }
  | { readonly kind: "text"; readonly text: string; readonly mediaType: string }
  /** A file that was uploaded to the vendor before. */
  | { readonly kind: "id"; readonly id: string; readonly vendor: Vendor; readonly mediaType?: string };

export interface ImagePart extends Marked {
  readonly kind: "image";
  readonly source: Source;
  /** `low`, `high` or `auto`, as OpenAI knows it. */
  readonly detail?: string;
}

export interface FilePart extends Marked {
  readonly kind: "file";
  readonly source: Source;
  readonly name?: string;
  /** Asks for citations of this document. */
  readonly citations?: boolean;
  /** A remark about the document that is not cited. */
  readonly context?: string;
}

export interface AudioPart extends Marked {
  readonly kind: "audio";
  readonly source: Source;
}

interface RefusalPart extends Marked {
  readonly kind: "refusal";
  readonly text: string;
}

/** A text that the model thought. */
interface ReasoningPart extends Marked {
  readonly kind: "reasoning";
  readonly text: string;
  readonly signature?: Signature;
  /** Identifier of the item in the Responses format. */
  readonly id?: string;
}

/** A thought that only its vendor can read. */
interface RedactedPart extends Marked {
  readonly kind: "redacted";
  readonly data: Signature;
  readonly id?: string;
}

export interface CallPart extends Marked {
  readonly kind: "call";
  readonly id: string;
  readonly name: string;
  /** JSON text as the model or the client wrote it; `argumentsObject` reads it. Free text when `isFreeText`. */
  readonly arguments: string;
  /** The call of a tool whose input is text and not JSON. */
  readonly isFreeText?: boolean;
  /** The provider runs the tool itself. */
  readonly isServerSide?: boolean;
  readonly signature?: Signature;
}

export interface ResultPart extends Marked {
  readonly kind: "result";
  /** Identifier of the call. */
  readonly id: string;
  /** Name of the tool where the format carries it; `toolNames` finds it for others. */
  readonly name?: string;
  readonly parts: readonly (TextPart | ImagePart | FilePart | VendorPart)[];
  /** Whether the client wrote one text, and no list of parts. */
  readonly isPlain?: boolean;
  readonly isError?: boolean;
}

/** A part that only one vendor knows, such as the result of a tool that the provider ran. */
export interface VendorPart extends Marked {
  readonly kind: "vendor";
  readonly vendor: Vendor;
  /** What it is in that vendor's words, for the debug event. */
  readonly name: string;
  readonly value: JsonObject;
}

/** A proof that only the vendor who made it can check. Clients see it with the vendor in front (signature.ts). */
export interface Signature {
  readonly vendor: Vendor;
  readonly value: string;
}

/** Where a text comes from, in the words of the vendor who said so. */
export interface Citation {
  readonly vendor: Vendor;
  readonly value: JsonObject;
}

export type Tool = FunctionTool | VendorTool;

export interface FunctionTool {
  readonly kind: "function";
  readonly name: string;
  readonly description?: string;
  /** JSON Schema; an object without properties when the client gave none. */
  readonly schema: JsonObject;
  readonly strict?: boolean;
  /** The input is text and not JSON. */
  readonly isFreeText?: boolean;
  cache?: CacheMark;
}

/** A tool that the provider runs or knows by name. */
interface VendorTool {
  readonly kind: "vendor";
  readonly vendor: Vendor;
  readonly name: string;
  readonly value: JsonObject;
  readonly path: string;
}

export type ToolChoice =
  | { readonly kind: "auto" }
  | { readonly kind: "none" }
  /** The model has to call a tool: any, or one of those named. */
  | { readonly kind: "required"; readonly names?: readonly string[] };

export interface Sampling {
  /** Limit of the answer in tokens. */
  maxTokens?: number | undefined;
  temperature?: number | undefined;
  topP?: number | undefined;
  topK?: number | undefined;
  stop?: readonly string[] | undefined;
  seed?: number | undefined;
  presencePenalty?: number | undefined;
  frequencyPenalty?: number | undefined;
  /** Number of answers that the client asks for. */
  choices?: number | undefined;
}

export interface ReasoningSettings {
  /** `none`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`. */
  effort?: string;
  /** Tokens to think with. Formats that know only efforts convert it (reasoning.ts). */
  budgetTokens?: number;
  /** The model decides how much to think. */
  isAdaptive?: boolean;
  /** False when thinking is switched off. */
  isEnabled: boolean;
  /** How thoughts are shown: "summarized", "omitted", "auto", "concise", "detailed". */
  display?: string;
}

/** The form of the answer. `schema` undefined: any JSON object. */
export interface OutputFormat {
  readonly name?: string;
  readonly schema?: JsonObject;
  readonly strict?: boolean;
}

/** Adds parts to the last turn when it has the same role, because results of parallel calls belong in one turn. */
export function addParts(turns: Turn[], role: Turn["role"], parts: readonly Part[]): void {
  if (parts.length === 0) return;
  const last = turns.at(-1);
  if (last?.role === role) last.parts.push(...parts);
  else turns.push({ role, parts: [...parts] });
}

/** Returns the names of the tools by the identifiers of their calls, for formats whose results carry the name. */
export function toolNames(turns: readonly Turn[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const { parts } of turns) for (const part of parts) if (part.kind === "call") names.set(part.id, part.name);
  return names;
}

/** Returns the identifiers of all calls and results. */
export function callIds(turns: readonly Turn[]): string[] {
  return turns.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.kind === "call" || part.kind === "result" ? [part.id] : [])),
  );
}
