/**
 * Runs `gwproxy render`: translates manifests as the controller does, and prints the objects that it would apply for each
 * Gateway. What stops a deployment goes to stderr, in the words of the Gateway's status.
 */
import { DIGEST_ANNOTATION } from "../api/data-plane.ts";
import type { KubeObject } from "../api/object.ts";
import { GATEWAY_GROUP, GWPROXY_GROUP } from "../api/refs.ts";
import { deployerSettings } from "../controller/deployer-settings.ts";
import type { ClassParametersRef, DeploymentOptions } from "../controller/options.ts";
import { servicePorts, type DeployerSettings, type Manifest } from "../deployer/objects/context.ts";
import { bringsSessionKey } from "../deployer/objects/session-key.ts";
import { render } from "../deployer/render.ts";
import { FatalError, messageOf } from "../lib/errors.ts";
import { isRecord } from "../lib/is-record.ts";
import type { Terminal } from "../lib/terminal.ts";
import { diagnosticLine } from "../runtime/report.ts";
import { validateFiles } from "../sources/directory/validate-files.ts";
import type { DeploymentPlan } from "../translator/gateways/deployment-plan.ts";
import { createTranslator } from "../translator/translate.ts";
import { printStructured } from "./output.ts";

export interface RenderOptions extends DeploymentOptions {
  readonly file: readonly string[];
  readonly output: "yaml" | "json";
  /** "namespace/name" of the only Gateway to render; undefined for all. */
  readonly gateway: string | undefined;
  readonly xdsMode: "plaintext" | "tls" | "either";
  readonly controllerName: string;
  readonly gatewayClassParametersRefs: Readonly<Record<string, ClassParametersRef>>;
}

/** Stands for what only a cluster knows. */
const GENERATED = "<generated>";

/**
 * @returns the exit code
 * @throws FatalError with exit code 2 when the files cannot be read
 */
export async function runRender(options: RenderOptions, terminal: Terminal): Promise<number> {
  const files = await validateFiles(options.file).catch((error: unknown) => {
    throw new FatalError(`cannot read the manifests: ${messageOf(error)}`, 2, error);
  });
  const errors = files.diagnostics.filter(({ severity }) => severity === "error").map(diagnosticLine);
  const plans = planGateways(files.accepted, options);
  const chosen = [...plans].filter(([key]) => options.gateway === undefined || options.gateway === key);
  if (chosen.length === 0) errors.push(missingText(options.gateway, [...plans.keys()]));
  const settings = deployerSettings(options, options.xdsMode === "plaintext" ? undefined : { ca: GENERATED });
  const objects = chosen.flatMap(([key, plan]) => {
    const problem = problemOf(plan, settings);
    if (problem === undefined) return renderPlan(plan, settings);
    errors.push(`Gateway ${key}: ${problem}`);
    return [];
  });
  terminal.out(printObjects(objects, options.output));
  for (const error of errors) terminal.err(`${error}\n`);
  return errors.length > 0 ? 1 : 0;
}

/** Returns the plans of the Gateways that are the controller's, by "namespace/name". */
function planGateways(objects: readonly KubeObject[], options: RenderOptions): ReadonlyMap<string, DeploymentPlan> {
  const { controllerName, className } = options;
  const translator = createTranslator({ controllerName, implicitClass: className });
  const hasClass = objects.some(({ kind, metadata }) => kind === "GatewayClass" && metadata.name === className);
  const all = hasClass ? objects : [...objects, ownClass(options)];
  const { deploymentPlans } = translator.apply(all.map((object) => ({ type: "set", object })));
  const own = [...deploymentPlans].flatMap(([key, plan]) =>
    plan === undefined || plan.isForeign ? [] : [[key, plan] as const],
  );
  return new Map(own.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Returns the GatewayClass that the controller creates in a cluster. */
function ownClass({ className, controllerName, gatewayClassParametersRefs: refs }: RenderOptions): KubeObject {
  const ref = Object.hasOwn(refs, className) ? refs[className] : undefined;
  const parametersRef = { group: GWPROXY_GROUP, kind: "GwParameters", ...ref };
  const spec = { controllerName, ...(ref === undefined ? {} : { parametersRef }) };
  const object = { apiVersion: `${GATEWAY_GROUP}/v1`, kind: "GatewayClass", metadata: { name: className }, spec };
  return object;
}

function missingText(gateway: string | undefined, known: readonly string[]): string {
  if (gateway === undefined) return "no Gateway of the controller is in the manifests";
  return `Gateway ${gateway} is not in the manifests; these are: ${known.slice(0, 20).join(", ") || "none"}`;
}

function problemOf(plan: DeploymentPlan, settings: DeployerSettings): string | undefined {
  const { error, addressError } = plan;
  if (error !== undefined) return `not accepted (${error.reason}): ${error.message}`;
  if (addressError !== undefined) return `not deployed (${addressError.reason}): ${addressError.message}`;
  return servicePorts(plan, settings).length === 0 ? "not deployed: no listener has a port for its Service" : undefined;
}

function renderPlan(plan: DeploymentPlan, settings: DeployerSettings): object[] {
  const ports = servicePorts(plan, settings);
  const sessionKey = bringsSessionKey(plan) ? undefined : GENERATED;
  return render({ plan, settings, ports, sessionKey }).map((object) => maskGenerated(object, plan.uid !== ""));
}

const CHECKSUMS: readonly string[] = [DIGEST_ANNOTATION, "checksum/xds-ca", "checksum/session-key"];

/** Replaces values that follow from generated ones. @param hasOwner the Gateway has a uid that objects can refer to */
function maskGenerated({ metadata, ...object }: Manifest, hasOwner: boolean): object {
  const { ownerReferences, ...rest } = metadata;
  const { data, spec } = object;
  const isSecret = object.kind === "Secret" && isRecord(data);
  return {
    ...object,
    metadata: {
      ...rest,
      annotations: maskAnnotations(metadata.annotations),
      ...(hasOwner ? { ownerReferences } : {}),
    },
    ...(isSecret ? { data: undefined, stringData: maskValues(data) } : {}),
    ...(isRecord(spec) && isRecord(spec["template"])
      ? { spec: { ...spec, template: maskTemplate(spec["template"]) } }
      : {}),
  };
}

function maskTemplate(template: Readonly<Record<string, unknown>>): object {
  const { metadata } = template;
  if (!isRecord(metadata) || !isRecord(metadata["annotations"])) return template;
  return { ...template, metadata: { ...metadata, annotations: maskAnnotations(metadata["annotations"]) } };
}

function maskAnnotations(annotations: Readonly<Record<string, unknown>>): object {
  const masked = Object.entries(annotations).map(([name, value]) => [
    name,
    CHECKSUMS.includes(name) ? GENERATED : value,
  ]);
  return Object.fromEntries(masked);
}

function maskValues(data: Readonly<Record<string, unknown>>): object {
  return Object.fromEntries(Object.keys(data).map((name) => [name, GENERATED]));
}

function printObjects(objects: readonly object[], form: RenderOptions["output"]): string {
  // The copy leaves out members without a value.
  const plain = JSON.parse(JSON.stringify(objects)) as object[];
  if (form === "json") return printStructured({ apiVersion: "v1", kind: "List", items: plain }, form);
  return plain.map((object) => `---\n${printStructured(object, form)}`).join("");
}
