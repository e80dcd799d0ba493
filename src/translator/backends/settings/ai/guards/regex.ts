/** Translates a `regex` guard. */
import { create } from "@bufbuild/protobuf";
import type { RegexGuard } from "../../../../../../generated/types/guardrails.ts";
import {
  BuiltinPattern,
  GuardAction,
  RegexGuardSchema,
} from "../../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { GuardPart } from "./guard.ts";

const BUILTINS: Readonly<Record<NonNullable<RegexGuard["builtins"]>[number], BuiltinPattern>> = {
  Ssn: BuiltinPattern.SSN,
  CreditCard: BuiltinPattern.CREDIT_CARD,
  PhoneNumber: BuiltinPattern.PHONE_NUMBER,
  Email: BuiltinPattern.EMAIL,
  CaSin: BuiltinPattern.CA_SIN,
};

const ACTIONS: Readonly<Record<NonNullable<RegexGuard["action"]>, GuardAction>> = {
  Mask: GuardAction.MASK,
  Reject: GuardAction.REJECT,
  Audit: GuardAction.AUDIT,
};

export function translateRegex({ matches = [], builtins = [], action }: RegexGuard): GuardPart {
  const value = create(RegexGuardSchema, {
    matches: [...matches],
    builtins: builtins.map((name) => BUILTINS[name]),
  });
  return { kind: { case: "regex", value }, action: ACTIONS[action ?? "Mask"] };
}
