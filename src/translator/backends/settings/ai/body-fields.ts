/**
 * Translates `defaults`, `overrides` and `transformations` of an `ai` block, which set fields of the request body.
 */
import type { FieldDefault, FieldTransformation } from "../../../../../generated/types/ai.ts";
import { phaseOfBackend } from "../../../policies/shared/expression-phase.ts";
import { checkExpression } from "../../../policies/shared/unit.ts";
import type { Report } from "../../../shared/report.ts";
import type { SettingsContext } from "../context.ts";
import type { AiFields } from "./ai-field.ts";

export function translateDefaults(fields: readonly FieldDefault[]): AiFields {
  return { defaults: fields.map(translateField) };
}

export function translateOverrides(fields: readonly FieldDefault[]): AiFields {
  return { overrides: fields.map(translateField) };
}

export function translateTransformations(
  fields: readonly FieldTransformation[],
  _context: SettingsContext,
  report: Report,
): AiFields {
  return { transformations: translateComputedFields(fields, report) };
}

export function translateComputedFields(
  fields: readonly FieldTransformation[],
  report: Report,
): { field: string; expression: string }[] {
  // An expression that does not compile removes its field, so that the client's value never passes in its place.
  const context = { report: (path: string, message: string) => report(path, message, "warning") };
  const phase = phaseOfBackend("ai.transformations[0].expression");
  return fields.map(({ field, expression }, at) => ({
    field,
    expression: checkExpression(expression, `[${at}].expression`, context, phase),
  }));
}

function translateField({ field, value }: FieldDefault): { field: string; valueJson: string } {
  return { field, valueJson: JSON.stringify(value) };
}
