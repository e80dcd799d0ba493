/**
 * Defines the shape of a unit translator, which turns one member of `traffic` in a GwPolicy into one unit of the IR,
 * and the helpers that all of them share.
 *
 * In: the member, and a context that records its reads. Out: the unit. Diagnostics are reported and never thrown. A unit
 * with a diagnostic is still sent when the data plane can fail it closed.
 */
import type { Traffic } from "../../../../generated/types/traffic.ts";
import type { TrafficUnit } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { parseExpression } from "../../../cel/compile/compile-expression.ts";
import { environmentOf, type CelPhase } from "../../../cel/environments/phases.ts";
import { messageOf } from "../../../lib/errors.ts";
import type { SecretReader } from "../../references/secrets.ts";
import type { Report } from "../../shared/report.ts";
import { phaseOfTraffic } from "./expression-phase.ts";
import type { ServiceReader } from "./external-service.ts";
import type { RemoteKeys } from "./remote-keys.ts";

export interface UnitContext {
  readonly secrets: SecretReader;
  readonly services: ServiceReader;
  /** Reads remote JWKS. */
  readonly jwks: Pick<RemoteKeys, "keys">;
  /** True when the unit runs before a route is chosen. */
  readonly preRouting: boolean;
  /** Reports a diagnostic at a path relative to `spec.traffic`. */
  readonly report: Report;
}

/** The part of the context that checking an expression needs. */
export type ExpressionContext = Pick<UnitContext, "report"> & Partial<Pick<UnitContext, "preRouting">>;

export type Unit = Exclude<TrafficUnit["unit"], { case: undefined }>;

export interface UnitTranslator {
  /** @returns undefined when the policy does not configure this unit */
  translate(traffic: Traffic, context: UnitContext): Unit | undefined;
}

/**
 * Checks an expression and returns it. One that does not compile is reported and sent all the same: the data plane
 * makes it fail, which denies the request.
 * @param place the CEL phase, when the field alone does not determine it
 */
export function checkExpression(
  text: string | undefined,
  path: string,
  context: ExpressionContext,
  place?: CelPhase,
): string {
  if (text === undefined || text === "") return "";
  const phase = place ?? phaseOfTraffic(path);
  try {
    parseExpression(text, environmentOf(context.preRouting && phase === "request" ? "gateway" : phase));
  } catch (error) {
    context.report(path, messageOf(error));
  }
  return text;
}

/** One policy of a block, and its path below `spec.traffic`. */
export interface Branch<P> {
  readonly condition: string;
  readonly conditionPath: string;
  readonly policy: P;
  readonly path: string;
}

/**
 * Returns the branches of a block. The plain form is one branch without a condition; `conditional` lists several.
 * @param name name of the block
 */
export function branchesOf<P>(
  name: string,
  block: { readonly conditional?: readonly { readonly condition?: string; readonly policy: P }[] } & Partial<P>,
): Branch<P>[] {
  // Without `conditional` the block itself is a complete policy; admission checks this.
  if (block.conditional === undefined)
    return [{ condition: "", conditionPath: `${name}.condition`, policy: block as P, path: name }];
  return block.conditional.map(({ condition = "", policy }, at) => {
    const entry = `${name}.conditional[${at}]`;
    return { condition, conditionPath: `${entry}.condition`, policy, path: `${entry}.policy` };
  });
}

/** Checks named expressions and sorts them by name, because equal content must encode to equal bytes. */
export function expressionMap(
  expressions: Readonly<Record<string, string>> | undefined,
  path: string,
  context: ExpressionContext,
  placeOf: (path: string) => CelPhase = phaseOfTraffic,
): Record<string, string> {
  const sorted = Object.entries(expressions ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(
    sorted.map(([name, text]) => {
      const at = `${path}.${name}`;
      return [name, checkExpression(text, at, context, placeOf(at))];
    }),
  );
}
