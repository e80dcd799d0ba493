/** Translates a transformation: headers, body and metadata set by expressions, in `traffic` and in backend blocks. */
import { create } from "@bufbuild/protobuf";
import {
  type Transformation,
  type Transform,
  TransformationSchema,
  TransformSchema,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { TransformationPolicy, Transform as ApiTransform } from "../../../../generated/types/traffic.ts";
import type { CelPhase } from "../../../cel/environments/phases.ts";
import { phaseOfTraffic } from "./expression-phase.ts";
import { expressionMap, checkExpression, type ExpressionContext } from "./unit.ts";

/**
 * @param path path of the block, in the form that `placeOf` and diagnostics expect
 * @param placeOf returns the CEL phase of the expression at a path
 */
export function translateTransformation(
  { request, response }: TransformationPolicy,
  path: string,
  context: ExpressionContext,
  placeOf: (path: string) => CelPhase = phaseOfTraffic,
): Transformation {
  const translate = (transform: ApiTransform, member: string): Transform =>
    translateTransform(transform, path === "" ? member : `${path}.${member}`, context, placeOf);
  return create(TransformationSchema, {
    ...(request === undefined ? {} : { request: translate(request, "request") }),
    ...(response === undefined ? {} : { response: translate(response, "response") }),
  });
}

function translateTransform(
  transform: ApiTransform,
  path: string,
  context: ExpressionContext,
  placeOf: (path: string) => CelPhase,
): Transform {
  const checked = (text: string | undefined, member: string): string =>
    checkExpression(text, `${path}.${member}`, context, placeOf(`${path}.${member}`));
  const headers = (field: "set" | "add") =>
    (transform[field] ?? []).map(({ name, value }, at) => ({
      name,
      expression: checked(value, `${field}[${at}].value`),
    }));
  return create(TransformSchema, {
    set: headers("set"),
    add: headers("add"),
    remove: [...(transform.remove ?? [])],
    body: checked(transform.body, "body"),
    metadata: expressionMap(transform.metadata, `${path}.metadata`, context, placeOf),
  });
}
