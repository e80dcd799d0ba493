/**
 * Finds the MCP servers that a `selector` of a GwBackend means: ports of Services whose `appProtocol` declares the
 * protocol. `../graph.ts` derives a view of each such Service, so that other Services and other changes recompute no
 * backend; `mcp.ts` makes the targets.
 */
import type { FullLabelSelector, McpSelector } from "../../../generated/types/mcp.ts";
import { matchesSelector, type LabelSelector, type Labels } from "../../api/label-selector.ts";
import type { KubeObject } from "../../api/object.ts";
import type { Service } from "../../api/core.ts";
import { servicePortKey } from "../../ir/keys.ts";
import type { Collection, Index, Readable, ReadableIndex } from "../../lib/collections/collection.ts";
import type { Read } from "../../lib/collections/graph.ts";
import { compare } from "../../lib/compare.ts";
import { within, type Report } from "../shared/report.ts";

/** The ports of one Service that are MCP servers. */
export interface McpServiceView {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Labels;
  /** Annotations that set the name and the path of its targets. */
  readonly targetName: string | undefined;
  readonly path: string | undefined;
  readonly ports: readonly { readonly name: string; readonly port: number; readonly legacySse: boolean }[];
}

/** One server that a selector found. */
export interface SelectedTarget {
  readonly name: string;
  /** Key of the Backend of the Service port. */
  readonly backend: string;
  readonly legacySse: boolean;
  readonly path: string | undefined;
}

export interface McpServiceCollections {
  readonly mcpServices: ReadableIndex<McpServiceView>;
  readonly namespaces: Readable<KubeObject>;
}

/** The selectors of a target in the form that they are matched with. */
interface Selectors {
  readonly namespaces: LabelSelector | undefined;
  readonly services: LabelSelector;
}

const STREAMABLE_HTTP = "gwproxy.dev/mcp";
const LEGACY_SSE = "gwproxy.dev/mcp-sse";
const TARGET_NAME = "gwproxy.dev/mcp-target-name";
const PATH = "gwproxy.dev/mcp-path";
/** Key under which the index holds every Service, for selectors that span namespaces. */
const EVERYWHERE = "*";
/** The form of a target name, which prefixes the names and URIs that clients see. */
const SECTION_NAME = /^[a-z0-9]+(?:(?:-+|[.])[a-z0-9]+)*$/;
const LONGEST_NAME = 253;
/** Limit of the targets that one selector finds, because each session and each list calls all of them. */
const MAX_SELECTED = 128;
const OPERATORS: ReadonlySet<string> = new Set(["In", "NotIn", "Exists", "DoesNotExist"]);

/** @returns undefined for a Service without such a port, so that nothing depends on it */
export function viewMcpService({ metadata, spec }: Service): McpServiceView | undefined {
  const ports = (spec.ports ?? [])
    .filter(({ protocol, appProtocol }) => (protocol ?? "TCP") === "TCP" && isMcp(appProtocol))
    .map(({ name, port, appProtocol }) => ({ name: name ?? "", port, legacySse: appProtocol === LEGACY_SSE }));
  if (ports.length === 0) return undefined;
  const { namespace = "", name, labels = {}, annotations = {} } = metadata;
  return { namespace, name, labels, targetName: annotations[TARGET_NAME], path: annotations[PATH], ports };
}

function isMcp(appProtocol: string | undefined): boolean {
  return appProtocol === STREAMABLE_HTTP || appProtocol === LEGACY_SSE;
}

export function indexMcpServices(services: Collection<McpServiceView>): Index<McpServiceView> {
  return services.index(({ namespace }) => [namespace, EVERYWHERE]);
}

interface SelectContext extends McpServiceCollections {
  /** Namespace of the backend. */
  readonly namespace: string;
  readonly read: Read;
  /** Reports mistakes, at the selector. */
  readonly error: Report;
}

/** Returns the servers in the order of their names. */
export function selectTargets(
  selector: McpSelector,
  { namespace, mcpServices, namespaces, read, error: report }: SelectContext,
): SelectedTarget[] {
  const wanted: Selectors = {
    namespaces: selector.namespaces && readSelector(selector.namespaces, within(report, "namespaces")),
    services: selector.services === undefined ? {} : readSelector(selector.services, within(report, "services")),
  };
  const isInNamespace = (service: McpServiceView): boolean =>
    wanted.namespaces === undefined ||
    matchesSelector(wanted.namespaces, {
      ...read.get(namespaces, service.namespace)?.metadata.labels,
      // Kubernetes sets this label on every namespace; files usually hold no Namespace objects.
      "kubernetes.io/metadata.name": service.namespace,
    });
  const found = read
    .byIndex(mcpServices, wanted.namespaces === undefined ? namespace : EVERYWHERE)
    .map(({ value }) => value)
    .filter((service) => isInNamespace(service) && matchesSelector(wanted.services, service.labels))
    .flatMap((service) => targetsOf(service, report))
    .sort((a, b) => compare(a.name, b.name) || compare(a.backend, b.backend));
  if (found.length > MAX_SELECTED)
    report("", `finds ${found.length} ports of Services; at most ${MAX_SELECTED} may be targets`);
  return found.slice(0, MAX_SELECTED);
}

function targetsOf(service: McpServiceView, report: Report): SelectedTarget[] {
  const { namespace, name: serviceName, targetName, path, ports } = service;
  if (targetName !== undefined && !isSectionName(targetName))
    report("", `Service ${namespace}/${serviceName}: the annotation ${TARGET_NAME} is not a section name`);
  return ports.map(({ name, port, legacySse }) => ({
    name: targetName ?? `${serviceName}-${name === "" ? port : name}`,
    backend: servicePortKey(namespace, serviceName, port),
    legacySse,
    path,
  }));
}

function isSectionName(text: string): boolean {
  return text.length <= LONGEST_NAME && SECTION_NAME.test(text);
}

/** Copies a selector, so that every member counts as read although it may match nothing yet. */
function readSelector({ matchLabels = {}, matchExpressions = [] }: FullLabelSelector, report: Report): LabelSelector {
  return {
    matchLabels: { ...matchLabels },
    matchExpressions: matchExpressions.map(({ key, operator, values = [] }, at) => {
      if (!OPERATORS.has(operator)) report(`matchExpressions[${at}].operator`, `unknown operator "${operator}"`);
      return { key, operator, values: [...values] };
    }),
  };
}
