/**
 * The shape of a translator for the settings of one provider key. `index.ts` has the table of them; `llm.ts` adds what
 * all providers share: name, address and policies.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { LLMProvider } from "../../../../generated/types/llm.ts";
import type { ProviderSchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Readable } from "../../../lib/collections/collection.ts";
import type { Read } from "../../../lib/collections/graph.ts";
import type { PoolNames } from "../../references/backend-refs.ts";
import type { Report } from "../../shared/report.ts";
import type { ServiceView } from "../../shared/views.ts";

export type ProviderKey = Exclude<keyof LLMProvider, "host" | "port" | "path" | "pathPrefix">;

/** The members of a Provider that its key decides. */
export type ProviderPart = Pick<
  MessageInitShape<typeof ProviderSchema>,
  "identity" | "model" | "formats" | "backend" | "service"
>;

export interface ProviderContext {
  readonly namespace: string;
  readonly services: Readable<ServiceView>;
  readonly pools: PoolNames;
  readonly read: Read;
  /** Reports an error that prevents the whole backend from being sent. */
  readonly error: Report;
}

/** @returns undefined after an error was reported */
export type ProviderTranslator<K extends ProviderKey> = (
  settings: NonNullable<LLMProvider[K]>,
  context: ProviderContext,
) => ProviderPart | undefined;
