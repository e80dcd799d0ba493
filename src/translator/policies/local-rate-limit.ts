/** Translates `traffic.rateLimit.local`: token buckets per replica; `conditional` becomes branches. */
import { create } from "@bufbuild/protobuf";
import type { LocalRateLimit as ApiLimit, RateLimitsPolicy } from "../../../generated/types/traffic-limits.ts";
import {
  LimitKind,
  LocalRateLimitRuleSchema,
  LocalRateLimitSchema,
  type LocalRateLimitRule,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { branchesOf, checkExpression, type UnitContext, type UnitTranslator } from "./shared/unit.ts";

const UNIT_MS = { Seconds: 1_000, Minutes: 60_000, Hours: 3_600_000 } as const;

export const localRateLimit: UnitTranslator = {
  translate({ rateLimit }, context) {
    if (rateLimit === undefined) return undefined;
    // Entries without a local limit are not branches of this unit.
    const branches = branchesOf<RateLimitsPolicy>("rateLimit", rateLimit).flatMap((branch) => {
      const { condition, conditionPath, policy, path } = branch;
      const { local } = policy;
      if (local === undefined) return [];
      return [
        {
          condition: checkExpression(condition, conditionPath, context),
          rules: local.map((limit, rank) => translateLimit(limit, `${path}.local[${rank}]`, context)),
        },
      ];
    });
    if (branches.length === 0) return undefined;
    const value =
      rateLimit.conditional === undefined ? { rules: branches.flatMap(({ rules }) => rules) } : { branches };
    return { case: "localRateLimit", value: create(LocalRateLimitSchema, value) };
  },
};

function translateLimit(limit: ApiLimit, path: string, context: UnitContext): LocalRateLimitRule {
  return create(LocalRateLimitRuleSchema, {
    limit: limit.requests ?? limit.tokens ?? 0,
    burst: limit.burst ?? 0,
    unitMs: UNIT_MS[limit.unit],
    kind: limit.tokens === undefined ? LimitKind.REQUESTS : LimitKind.TOKENS,
    key: checkExpression(limit.key, `${path}.key`, context),
  });
}
