/** The shape of a translator for one field of an `ai` block; `index.ts` has the table of them. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { BackendAI } from "../../../../../generated/types/ai.ts";
import type { AiPolicySchema } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Report } from "../../../shared/report.ts";
import type { SettingsContext } from "../context.ts";

/** Fields of an AiPolicy. A field that says nothing is left out, so that a less specific level supplies it. */
export type AiFields = Exclude<MessageInitShape<typeof AiPolicySchema>, { $typeName: string }>;

/** @param report takes paths relative to the field */
export type AiFieldTranslator<F extends keyof BackendAI> = (
  value: NonNullable<BackendAI[F]>,
  context: SettingsContext,
  report: Report,
) => AiFields;
