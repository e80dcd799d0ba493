/**
 * Renders diagnostics as a SARIF 2.1.0 log (OASIS), which code review tools show beside the lines. validate.ts uses it.
 */
import { isAbsolute } from "node:path";
import { pathToFileURL } from "node:url";
import { VERSION } from "../../lib/version.ts";
import type { AttributedDiagnostic } from "./server.ts";

/** Descriptions of the rules, by reason; the message of each diagnostic is in its result. */
const RULES: Readonly<Record<string, string>> = {
  FieldValueRequired: "A field that must be set is missing.",
  FieldValueInvalid: "A value breaks a rule of its field, or the field does not exist.",
  FieldValueNotSupported: "A value is not one of those that the field takes.",
  FieldValueTypeInvalid: "A value is of another type than its field.",
  FieldValueTooLong: "A value is longer than its field takes.",
  FieldValueTooMany: "A list or map has more entries than its field takes.",
  FieldValueDuplicate: "A list holds an item twice.",
  FieldValueForbidden: "A field may not be set there.",
  Duplicate: "An object is defined twice.",
  Unreadable: "The text is not a manifest.",
  ReferenceNotFound: "An object is named that does not exist, or a part of it that it does not have.",
  RefNotPermitted: "Another namespace is named, and none of its ReferenceGrants permits it.",
  NotServed: "The object has no effect in this version or here.",
};

export function sarifLog(diagnostics: readonly AttributedDiagnostic[]): object {
  const ids = [...new Set(diagnostics.map(({ reason }) => ruleId(reason)))].sort();
  return {
    $schema: "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
    version: "2.1.0",
    runs: [
      {
        tool: {
          driver: {
            name: "gwproxy",
            semanticVersion: VERSION,
            rules: ids.map((id) => ({
              id,
              shortDescription: { text: RULES[id] ?? "The API server refuses the object, or warns of it." },
            })),
          },
        },
        columnKind: "utf16CodeUnits",
        results: diagnostics.map((diagnostic) => resultOf(diagnostic, ids)),
      },
    ],
  };
}

function resultOf(diagnostic: AttributedDiagnostic, ids: readonly string[]): object {
  const { file, line, column, object, path, severity, reason, message, suggestion, excerpt, saidBy } = diagnostic;
  const subject = [object, path].filter((part) => part !== "").join(": ");
  const text = `${subject === "" ? "" : `${subject}: `}${message}${suggestion === "" ? "" : ` (${suggestion})`}`;
  const id = ruleId(reason);
  return {
    ruleId: id,
    ruleIndex: ids.indexOf(id),
    level: severity,
    message: { text },
    locations: [
      {
        physicalLocation: {
          artifactLocation: { uri: uriOf(file) },
          region: {
            startLine: line,
            startColumn: column,
            ...(excerpt === undefined ? {} : { snippet: { text: excerpt.text } }),
          },
        },
        ...(subject === "" ? {} : { logicalLocations: [{ fullyQualifiedName: subject, kind: "object" }] }),
      },
    ],
    properties: { path, suggestion, saidBy },
  };
}

function ruleId(reason: string): string {
  return reason === "" ? "Refused" : reason;
}

/** Relative paths stay relative, because review tools resolve them against the root of the repository. */
function uriOf(file: string): string {
  if (isAbsolute(file)) return pathToFileURL(file).href;
  return file.split(/[/\\]/).map(encodeURIComponent).join("/");
}
