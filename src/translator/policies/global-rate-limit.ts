/** Translates `traffic.rateLimit.global`: limits that a rate limit service counts for all replicas. */
import { create } from "@bufbuild/protobuf";
import type {
  GlobalRateLimit as ApiLimit,
  RateLimitDescriptor as ApiDescriptor,
  RateLimitsPolicy,
} from "../../../generated/types/traffic-limits.ts";
import {
  GlobalRateLimitBranchSchema,
  GlobalRateLimitSchema,
  LimitKind,
  RateDescriptorSchema,
  type GlobalRateLimitBranch,
  type RateDescriptor,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { branchesOf, checkExpression, type UnitContext, type UnitTranslator } from "./shared/unit.ts";

export const globalRateLimit: UnitTranslator = {
  translate({ rateLimit }, context) {
    if (rateLimit === undefined) return undefined;
    // Entries without a global limit are not branches of this unit.
    const branches = branchesOf<RateLimitsPolicy>("rateLimit", rateLimit).flatMap((entry) => {
      const { condition, conditionPath, policy, path } = entry;
      if (policy.global === undefined) return [];
      const branch = translateLimit(policy.global, `${path}.global`, context);
      branch.condition = checkExpression(condition, conditionPath, context);
      return [branch];
    });
    if (branches.length === 0) return undefined;
    return { case: "globalRateLimit", value: create(GlobalRateLimitSchema, { branches }) };
  },
};

function translateLimit(limit: ApiLimit, path: string, context: UnitContext): GlobalRateLimitBranch {
  return create(GlobalRateLimitBranchSchema, {
    service: context.services.resolve(limit, path, (at, message) => context.report(at, message)),
    failOpen: limit.failureMode === "FailOpen",
    domain: limit.domain,
    descriptors: limit.descriptors.map((descriptor, rank) =>
      translateDescriptor(descriptor, `${path}.descriptors[${rank}]`, context),
    ),
  });
}

function translateDescriptor(descriptor: ApiDescriptor, path: string, context: UnitContext): RateDescriptor {
  const tokens = descriptor.unit === "Tokens";
  return create(RateDescriptorSchema, {
    entries: descriptor.entries.map(({ name, expression }, rank) => ({
      name,
      expression: checkExpression(expression, `${path}.entries[${rank}].expression`, context),
    })),
    kind: tokens ? LimitKind.TOKENS : LimitKind.REQUESTS,
    cost: checkExpression(descriptor.cost, `${path}.cost`, context, tokens ? "response" : "request"),
    limitOverride: checkExpression(descriptor.limitOverride, `${path}.limitOverride`, context),
  });
}
