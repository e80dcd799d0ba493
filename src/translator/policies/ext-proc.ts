/** Translates `traffic.extProc`: an external processor that inspects and changes requests and responses. */
import { create } from "@bufbuild/protobuf";
import type { ExtProcOptions, ExtProcPolicy } from "../../../generated/types/traffic-external.ts";
import {
  BodyMode,
  ExtProcBranchSchema,
  ExtProcChoiceSchema,
  ExtProcSchema,
  type ExtProc,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { branchesOf, checkExpression, expressionMap, type UnitContext, type UnitTranslator } from "./shared/unit.ts";

const BODY_MODES = {
  None: BodyMode.NONE,
  Buffered: BodyMode.BUFFERED,
  BufferedPartial: BodyMode.BUFFERED_PARTIAL,
  FullDuplexStreamed: BodyMode.FULL_DUPLEX_STREAMED,
} as const;

export const extProc: UnitTranslator = {
  translate({ extProc: block }, context) {
    if (block === undefined) return undefined;
    const branches = branchesOf<ExtProcPolicy>("extProc", block).map(({ condition, conditionPath, policy, path }) =>
      create(ExtProcBranchSchema, {
        condition: checkExpression(condition, conditionPath, context),
        extProc: translateProcessor(policy, path, context),
      }),
    );
    return { case: "extProc", value: create(ExtProcChoiceSchema, { branches }) };
  },
};

function translateProcessor(policy: ExtProcPolicy, path: string, context: UnitContext): ExtProc {
  const { processingOptions: options = {}, metadataContext = {} } = policy;
  const namespaces = Object.entries(metadataContext).sort(([a], [b]) => (a < b ? -1 : 1));
  const { requestAttributes, responseAttributes } = policy;
  return create(ExtProcSchema, {
    service: context.services.resolve(policy, path, (at, message) => context.report(at, message)),
    failOpen: policy.failureMode === "FailOpen",
    request: modesOf(options.requestHeaderMode, options.requestBodyMode, options.requestTrailerMode),
    response: modesOf(options.responseHeaderMode, options.responseBodyMode, options.responseTrailerMode),
    allowModeOverride: options.allowModeOverride ?? false,
    metadataContext: Object.fromEntries(
      namespaces.map(([name, values]) => [
        name,
        { expressions: expressionMap(values, `${path}.metadataContext.${name}`, context) },
      ]),
    ),
    requestAttributes: expressionMap(requestAttributes, `${path}.requestAttributes`, context),
    responseAttributes: expressionMap(responseAttributes, `${path}.responseAttributes`, context),
  });
}

function modesOf(
  headers: ExtProcOptions["requestHeaderMode"],
  body: ExtProcOptions["requestBodyMode"],
  trailers: ExtProcOptions["requestTrailerMode"],
) {
  return {
    headers: headers !== "Skip",
    body: BODY_MODES[body ?? "FullDuplexStreamed"],
    trailers: trailers !== "Skip",
  };
}
