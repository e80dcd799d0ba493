/**
 * Translates `sessionAffinity` of a backend block: the expression whose value identifies a session. `settings.ts` uses
 * it.
 */
import { create } from "@bufbuild/protobuf";
import type { SessionAffinity as ApiAffinity } from "../../../../generated/types/backend-policies.ts";
import { SessionAffinitySchema, type SessionAffinity } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { phaseOfBackend } from "../../policies/shared/expression-phase.ts";
import { checkExpression } from "../../policies/shared/unit.ts";
import type { Report } from "../../shared/report.ts";

export function translateSessionAffinity({ source }: ApiAffinity, report: Report): SessionAffinity {
  const place = phaseOfBackend("sessionAffinity.source");
  // An expression that does not compile yields no sessions; requests then go to the endpoint with the least load.
  const context = { report: (path: string, message: string) => report(path, message, "warning") };
  return create(SessionAffinitySchema, { source: checkExpression(source, "source", context, place) });
}
