/**
 * Finds the pods that an argument such as `gateway/edge` means; commands that ask data planes use it. Each failure says
 * what to do next.
 */
import { FatalError } from "../../lib/errors.ts";
import { isRecord } from "../../lib/is-record.ts";
import { ApiError } from "../../sources/kubernetes/api-error.ts";
import type { KubernetesClient } from "../../sources/kubernetes/client.ts";

/** Label of the pods of a Gateway (GEP-1762). */
const GATEWAY_LABEL = "gateway.networking.k8s.io/gateway-name";

export interface FoundPod {
  readonly namespace: string;
  readonly name: string;
  /** The pod runs a controller, whose admin server has another port. */
  readonly isController?: boolean;
}

/** A resource by its type and name. */
interface NamedResource {
  readonly type: ResourceType;
  readonly name: string;
  readonly namespace: string;
}

const TYPES = {
  gateway: ["gateway", "gateways", "gtw"],
  /** Pods of the Deployment of a controller. */
  controller: ["controller", "controllers"],
  service: ["service", "services", "svc"],
  deployment: ["deployment", "deployments", "deploy"],
  replicaset: ["replicaset", "replicasets", "rs"],
  statefulset: ["statefulset", "statefulsets", "sts"],
  daemonset: ["daemonset", "daemonsets", "ds"],
  pod: ["pod", "pods", "po"],
} as const;
type ResourceType = keyof typeof TYPES;

/** Parses "gateway/edge", "deploy/edge.team" or "pod-name"; a suffix names the namespace. */
function parseResource(text: string, namespace: string): NamedResource {
  const parts = text.split("/");
  const [typeText, full] = parts.length === 1 ? ["pod", text] : [parts[0] ?? "", parts[1] ?? ""];
  const type = (Object.keys(TYPES) as ResourceType[]).find((each) =>
    (TYPES[each] as readonly string[]).includes(typeText.toLowerCase()),
  );
  if (type === undefined || parts.length > 2 || full === "")
    throw new FatalError(`"${text}" is not TYPE/NAME; use one of ${Object.keys(TYPES).join(", ")}, or a pod's name`, 2);
  const [name = "", own] = full.split(".", 2);
  return { type, name, namespace: own ?? namespace };
}

/** Returns the running pods, sorted by name. @param resource undefined selects the only Gateway of the namespace */
export async function findPods(
  client: KubernetesClient,
  resource: string | undefined,
  namespace: string,
): Promise<readonly FoundPod[]> {
  const named = resource === undefined ? await onlyGateway(client, namespace) : parseResource(resource, namespace);
  if (named.type === "pod") return [named];
  const selector = await selectorOf(client, named);
  const path = `/api/v1/namespaces/${encodeURIComponent(named.namespace)}/pods`;
  const pods = await list(client, path, { labelSelector: selector });
  const found = pods
    .filter(({ status }) => isRecord(status) && status["phase"] === "Running")
    .map((pod) => ({ namespace: named.namespace, name: nameOf(pod), isController: named.type === "controller" }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  if (found.length > 0) return found;
  throw new FatalError(
    `${named.type} ${named.namespace}/${named.name} has no running pod; ` +
      `see kubectl -n ${named.namespace} get pods -l '${selector}'`,
  );
}

async function onlyGateway(client: KubernetesClient, namespace: string): Promise<NamedResource> {
  const path = `/apis/gateway.networking.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/gateways`;
  const names = (await list(client, path)).map(nameOf);
  const [name] = names;
  if (name !== undefined && names.length === 1) return { type: "gateway", name, namespace };
  if (name === undefined)
    throw new FatalError(`namespace ${namespace} has no Gateway; name another namespace with -n, or a resource`);
  throw new FatalError(`namespace ${namespace} has several Gateways; name one: gateway/${names.join(", gateway/")}`);
}

const COLLECTIONS: Readonly<Record<Exclude<ResourceType, "gateway" | "pod">, string>> = {
  controller: "/apis/apps/v1",
  service: "/api/v1",
  deployment: "/apis/apps/v1",
  replicaset: "/apis/apps/v1",
  statefulset: "/apis/apps/v1",
  daemonset: "/apis/apps/v1",
};

async function selectorOf(client: KubernetesClient, { type, name, namespace }: NamedResource): Promise<string> {
  if (type === "gateway" || type === "pod") return `${GATEWAY_LABEL}=${name}`;
  const plural = type === "controller" ? "deployments" : `${type}s`;
  const path = `${COLLECTIONS[type]}/namespaces/${encodeURIComponent(namespace)}/${plural}/${encodeURIComponent(name)}`;
  const object = await ask(client, path);
  const spec = isRecord(object) && isRecord(object["spec"]) ? object["spec"] : {};
  const selector = isRecord(spec["selector"]) ? spec["selector"] : {};
  const labels = isRecord(selector["matchLabels"]) ? selector["matchLabels"] : selector;
  const pairs = Object.entries(labels).filter((pair): pair is [string, string] => typeof pair[1] === "string");
  if (pairs.length === 0) throw new FatalError(`${type} ${namespace}/${name} selects no pods; name a pod instead`);
  return pairs.map(([key, value]) => `${key}=${value}`).join(",");
}

async function list(
  client: KubernetesClient,
  path: string,
  query?: Readonly<Record<string, string>>,
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const answer = await ask(client, path, query);
  const items = isRecord(answer) ? answer["items"] : undefined;
  return Array.isArray(items) ? items.filter(isRecord) : [];
}

/** Sends a GET, and says what to do where it fails. */
async function ask(
  client: KubernetesClient,
  path: string,
  query: Readonly<Record<string, string>> = {},
): Promise<unknown> {
  try {
    return await client.request({ method: "GET", path, query });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new FatalError(`${error.message}; ${nextStep(error, client.server)}`, 1, error);
  }
}

function nextStep({ status }: ApiError, server: string): string {
  if (status === 0) return `is ${server} up, and does the kubeconfig name the right cluster?`;
  if (status === 401) return "log in to the cluster again";
  if (status === 403) return "ask for the right to get and list it, and to create pods/portforward";
  if (status === 404) return "check the name and the namespace (-n), and that the CRDs are installed";
  return "try again";
}

function nameOf({ metadata }: Readonly<Record<string, unknown>>): string {
  return isRecord(metadata) && typeof metadata["name"] === "string" ? metadata["name"] : "";
}
