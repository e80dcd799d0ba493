/** `sessionAffinity` of a backend block: what the requests of one session have in common. */
import { create } from "@bufbuild/protobuf";
import type { SessionAffinity as ApiAffinity } from "../../../../generated/types/backend-policies.ts";
import { SessionAffinitySchema, type SessionAffinity } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { phaseOfBackend } from "../../policies/shared/expression-phase.ts";
import { checkExpression } from "../../policies/shared/unit.ts";
import type { Report } from "./settings.ts";

export function translateSessionAffinity({ source }: ApiAffinity, report: Report): SessionAffinity {
  const place = phaseOfBackend("sessionAffinity.source");
  // One that does not compile makes no sessions: requests go wherever the load is least.
  const context = { report: (path: string, message: string) => report(path, message, "warning") };
  return create(SessionAffinitySchema, { source: checkExpression(source, "source", context, place) });
}
