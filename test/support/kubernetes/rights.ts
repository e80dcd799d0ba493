/**
 * Compares the rights that the chart grants with the requests that an API server has recorded. The test of the rights uses
 * it.
 */
import type { ChartObject } from "./chart.ts";

/** One verb on one resource. */
export interface Right {
  readonly group: string;
  /** Plural name, with "/status" for the subresource. */
  readonly resource: string;
  readonly verb: string;
  /** undefined for every namespace. */
  readonly namespace: string | undefined;
  /** Names of objects; empty for all. */
  readonly names: readonly string[];
}

export interface RecordedRequest {
  readonly group: string;
  readonly resource: string;
  readonly verb: string;
  readonly namespace: string;
  readonly name: string;
  readonly code: number;
}

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

interface Binding extends ChartObject {
  readonly roleRef: { readonly kind: string; readonly name: string };
  readonly subjects: readonly { readonly name: string }[];
}

/** Lists the rights of a service account, one for each resource and verb of each rule. */
export function listRights(objects: readonly ChartObject[], account: string): Right[] {
  const bindings = objects
    .filter(({ kind }) => kind.endsWith("RoleBinding"))
    .map((object) => object as Binding) // by their kind
    .filter(({ subjects }) => subjects.some(({ name }) => name === account));
  return bindings.flatMap(({ kind, metadata, roleRef }) => {
    const role = objects.find((each) => each.kind === roleRef.kind && each.metadata.name === roleRef.name);
    const rules = (role?.["rules"] ?? []) as readonly Rule[]; // a role by its kind
    const namespace = kind === "RoleBinding" ? metadata.namespace : undefined;
    return rules.flatMap((rule) => listRightsOf(rule, namespace));
  });
}

function listRightsOf(rule: Rule, namespace: string | undefined): Right[] {
  const { apiGroups, resources, verbs, resourceNames: names = [] } = rule;
  return apiGroups.flatMap((group) =>
    resources.flatMap((resource) => verbs.map((verb) => ({ group, resource, verb, namespace, names }))),
  );
}

/** Reads an audit log. Applying an object that does not exist needs the right to create it too, and counts twice. */
export function parseAuditLog(text: string, account: string): RecordedRequest[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as AuditEvent)
    .filter(({ user, objectRef }) => user.username.endsWith(`:${account}`) && objectRef !== undefined)
    .flatMap(({ verb, objectRef = {}, responseStatus }) => {
      const { apiGroup: group = "", resource: plural = "", subresource, namespace = "", name = "" } = objectRef;
      const resource = subresource === undefined ? plural : `${plural}/${subresource}`;
      const request = { group, resource, verb, namespace, name, code: responseStatus?.code ?? 0 };
      return verb === "patch" && request.code === 201 ? [request, { ...request, verb: "create" }] : [request];
    });
}

/** An event of audit.k8s.io/v1, as far as it is read. */
interface AuditEvent {
  readonly verb: string;
  readonly user: { readonly username: string };
  readonly objectRef?: {
    readonly apiGroup?: string;
    readonly resource?: string;
    readonly subresource?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly responseStatus?: { readonly code?: number };
}

export function isAllowed(request: RecordedRequest, rights: readonly Right[]): boolean {
  return rights.some(
    ({ group, resource, verb, namespace, names }) =>
      group === request.group &&
      resource === request.resource &&
      verb === request.verb &&
      (namespace === undefined || namespace === request.namespace) &&
      (names.length === 0 || names.includes(request.name)),
  );
}

/** Writes a right as a person would name it, such as "patch gateways/status.gateway.networking.k8s.io". */
export function describeRight({ group, resource, verb, namespace }: Right): string {
  return `${verb} ${resource}${group === "" ? "" : `.${group}`}${namespace === undefined ? "" : ` in ${namespace}`}`;
}
