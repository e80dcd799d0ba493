/**
 * The shape of a translator for one kind of guard; `index.ts` has the table of them. `prompt-guard.ts` adds what all
 * guards share: scope and response.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { RequestGuard } from "../../../../../../generated/types/guardrails.ts";
import type { GuardSchema } from "../../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Report } from "../../../../shared/report.ts";
import type { SettingsContext } from "../../context.ts";

/** Request guards may be of all kinds; response guards of all but `moderation`. */
export type GuardKind = "regex" | "webhook" | "moderation" | "guardrailsA" | "guardrailsB";

type GuardInit = Exclude<MessageInitShape<typeof GuardSchema>, { $typeName: string }>;

export type GuardPart = Pick<GuardInit, "kind" | "action" | "failOpen">;

/** @param report takes paths relative to the block of the kind */
export type GuardTranslator<K extends GuardKind> = (
  block: NonNullable<RequestGuard[K]>,
  context: SettingsContext,
  report: Report,
) => GuardPart;
