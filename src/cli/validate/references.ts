/**
 * Finds diagnostics of objects that are valid by themselves: references to missing objects, and settings that the
 * translator cannot put in force. `gwproxy validate` uses it. The translator runs on the objects as in `gwproxy up`.
 */
import type { KubeObject, ObjectId } from "../../api/object.ts";
import { objectId, objectKey } from "../../api/object.ts";
import { GATEWAY_GROUP } from "../../api/refs.ts";
import { closest } from "../../lib/suggest.ts";
import { type CheckedObject, type FileDiagnostic, titleOf } from "../../sources/directory/check.ts";
import type { ValidatedFiles } from "../../sources/directory/validate-files.ts";
import type { Diagnostic } from "../../translator/shared/diagnostics.ts";
import { explainDiagnostic, isAtOrBelow } from "../../translator/references/explain.ts";
import { findReferences, indexObjects, type ObjectIndex, type Reference } from "../../translator/references/find.ts";
import { createTranslator } from "../../translator/translate.ts";
import { FILE_TRANSLATION, fileTranslation } from "../../runtime/manifests.ts";

const { controllerName: CONTROLLER_NAME, implicitClass: CLASS_NAME } = FILE_TRANSLATION;

/**
 * Stands in for every JWKS that a translation needs from another server, so that nothing is fetched. It holds a key
 * that is not in use anywhere.
 */
const PLACEHOLDER_JWKS = JSON.stringify({ keys: [{ kid: "validate", kty: "OKP", crv: "Ed25519", x: "AAAA" }] });

export function validateReferences(
  { objects, accepted, hidden }: Omit<ValidatedFiles, "diagnostics">,
  { enableInference }: { readonly enableInference: boolean },
): FileDiagnostic[] {
  const index = indexObjects([
    ...objects.map(({ object, rejection }) => ({ object, isRefused: rejection !== undefined })),
    ...hidden.map((id) => ({ object: objectNamed(id), isRefused: true })),
  ]);
  const findings = new Map<string, Diagnostic[]>();
  for (const diagnostic of translate(accepted, enableInference)) {
    const key = objectKey(diagnostic.object);
    findings.set(key, [...(findings.get(key) ?? []), diagnostic]);
  }
  const isRoutingBroken =
    objects.some(({ id, rejection }) => rejection !== undefined && id.group === GATEWAY_GROUP) ||
    hidden.some(({ group }) => group === GATEWAY_GROUP) ||
    [...findings.values()].flat().some(({ object }) => object.group === GATEWAY_GROUP);
  const inForce = new Set(accepted);
  return objects
    .filter(({ object }) => inForce.has(object))
    .flatMap((checked) => {
      const diagnostics = findings.get(objectKey(checked.id)) ?? [];
      const found = findingsOf(checked.object, diagnostics, { index, isRoutingBroken });
      return [...found, ...classFindings(checked.object, index)].map((finding) => placed(checked, finding));
    });
}

function objectNamed({ group, kind, namespace, name }: ObjectId): KubeObject {
  return { apiVersion: group === "" ? "v1" : `${group}/v1`, kind, metadata: { namespace, name } };
}

function translate(objects: readonly KubeObject[], enableInference: boolean): readonly Diagnostic[] {
  const translator = createTranslator(fileTranslation({ enableInference }));
  let { documents = [] } = translator.apply(objects.map((object) => ({ type: "set", object })));
  for (let turn = 0; documents.length > 0 && turn < 2; turn++) {
    const events = documents.map(
      ({ key }) => ({ type: "document", key, document: { text: PLACEHOLDER_JWKS } }) as const,
    );
    ({ documents = [] } = translator.apply(events));
  }
  return translator.diagnostics();
}

type ReferenceFinding = Pick<FileDiagnostic, "path" | "severity" | "reason" | "message" | "suggestion">;

interface Context {
  readonly index: ObjectIndex;
  /** True when a Gateway or a route is invalid, so that the attachment of policies cannot be decided. */
  readonly isRoutingBroken: boolean;
}

function findingsOf(object: KubeObject, diagnostics: readonly Diagnostic[], context: Context): ReferenceFinding[] {
  const references = findReferences(object, context.index);
  return [
    ...references.flatMap((reference) => referenceFinding(reference, diagnostics)),
    ...diagnostics.flatMap((diagnostic) => {
      const { path, suggestion, reference } = explainDiagnostic(diagnostic, object, references, context.index);
      const isSaid = reference !== undefined && (reference.error !== undefined || reference.isTargetRefused);
      if (isSaid || isDerived(diagnostic, references, context)) return [];
      const { severity, message, code } = diagnostic;
      return [{ path, severity, reason: reasonOf(code), message, suggestion }];
    }),
  ];
}

/**
 * Reports a missing target: an error when files contain other objects of the kind, a warning when the target may exist
 * elsewhere.
 */
function referenceFinding({ error, ...reference }: Reference, diagnostics: readonly Diagnostic[]): ReferenceFinding[] {
  if (error === undefined) return [];
  const { path, message, suggestion, isKindUnknown } = error;
  const said = diagnostics.find((diagnostic) => isAtOrBelow(diagnostic.path, reference.path));
  const { kind } = reference.target;
  const where = `no ${kind} is among the files, so it may exist elsewhere`;
  return [
    {
      path,
      severity: isKindUnknown ? "warning" : "error",
      reason: "ReferenceNotFound",
      // The translator reports a missing permission first, as in a cluster; here the missing object is the cause.
      message: said === undefined || said.message.includes("ReferenceGrant") ? message : said.message,
      suggestion: isKindUnknown ? where : suggestion,
    },
  ];
}

/** Whether a diagnostic only follows from another diagnostic and adds no information. */
function isDerived({ code }: Diagnostic, references: readonly Reference[], { isRoutingBroken }: Context): boolean {
  if (code === "no_valid_cacertificate") return references.some(({ error }) => error !== undefined);
  return code === "target_unattached" && isRoutingBroken;
}

/** Converts "not_served" to "NotServed", the form of reasons in SARIF output. */
function reasonOf(code: string): string {
  return code
    .split("_")
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("");
}

/** Warns about a Gateway of another controller, which gwproxy ignores silently otherwise. */
function classFindings(object: KubeObject, index: ObjectIndex): ReferenceFinding[] {
  const { group, kind } = objectId(object);
  if (group !== GATEWAY_GROUP || kind !== "Gateway") return [];
  // The cast holds: the Gateway was accepted, so it has the shape of its schema.
  const { gatewayClassName } = (object as KubeObject & { spec: { gatewayClassName: string } }).spec;
  const classId = { group: GATEWAY_GROUP, kind: "GatewayClass", namespace: "", name: gatewayClassName };
  const known = index.get(classId)?.object as { spec?: { controllerName?: string } } | undefined;
  const warn = (message: string, suggestion: string): ReferenceFinding[] => [
    { path: "spec.gatewayClassName", severity: "warning", reason: "NotServed", message, suggestion },
  ];
  if (known !== undefined) {
    const owner = known.spec?.controllerName ?? "";
    if (owner === CONTROLLER_NAME) return [];
    const message = `GatewayClass ${gatewayClassName} belongs to the controller ${owner}, so gwproxy does not serve this Gateway`;
    return warn(message, `use a class with the controllerName ${CONTROLLER_NAME}`);
  }
  if (gatewayClassName === CLASS_NAME) return [];
  const names = [CLASS_NAME, ...index.list(GATEWAY_GROUP, "GatewayClass").map(({ metadata }) => metadata.name)];
  const near = closest(gatewayClassName, names);
  const message = `GatewayClass ${gatewayClassName} is not among the files, so gwproxy does not serve this Gateway here`;
  return warn(message, near === undefined ? `use ${CLASS_NAME}, which needs no object` : `did you mean \`${near}\`?`);
}

function placed(checked: CheckedObject, finding: ReferenceFinding): FileDiagnostic {
  const { file, id, object } = checked;
  const about = { object: titleOf(object), groupKind: `${id.group}/${id.kind}`, lost: undefined };
  return { file, ...checked.mark(finding.path, "value"), ...about, ...finding };
}
