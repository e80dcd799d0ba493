/**
 * Checks the part of an object that a reference names: a listener, a rule, a port, a provider or an entry. `find.ts`
 * uses it.
 */
import { type KubeObject, objectId } from "../../api/object.ts";
import { describeRef } from "../../api/refs.ts";
import { suggestName } from "./suggest.ts";
import { valuesAt } from "./places.ts";

export interface MissingPart {
  /** Member of the reference that is wrong. */
  readonly member: string;
  readonly message: string;
  readonly suggestion: string;
}

type Ref = Readonly<Record<string, unknown>>;

/** @param path path of the reference, which shows whether it is a policy target or a backend reference */
export function missingPart(ref: Ref, target: KubeObject, path: string): MissingPart | undefined {
  const { group, kind } = objectId(target);
  switch (`${group}/${kind}`) {
    case "/Service":
      return missingPort(ref, target, path);
    case "/Secret":
    case "/ConfigMap":
      return missingEntry(ref, target);
    case "gateway.networking.k8s.io/Gateway":
    case "gateway.networking.k8s.io/ListenerSet":
      return missingListener(ref, target);
    case "gateway.networking.k8s.io/HTTPRoute":
    case "gateway.networking.k8s.io/GRPCRoute":
      return missingSection(ref, target, namesAt(target, "spec.rules.*"), "rule");
    case "gwproxy.dev/GwBackend":
      return missingSection(
        ref,
        target,
        [...namesAt(target, "spec.ai.groups.*.providers.*"), ...namesAt(target, "spec.mcp.targets.*")],
        "provider",
      );
    default:
      return undefined;
  }
}

/** Checks a port of a Service. A policy names it in `sectionName`, a backend reference in `port`. */
function missingPort(ref: Ref, target: KubeObject, path: string): MissingPart | undefined {
  const ports = valuesAt(target, ["spec", "ports", "*"]).map(({ value }) => value);
  const isTarget = path.startsWith("spec.targetRefs[");
  const wanted = ref[isTarget ? "sectionName" : "port"];
  if (wanted === undefined && isTarget) return undefined;
  const numbers = ports.filter(({ protocol = "TCP" }) => protocol === "TCP").map(({ port }) => String(port));
  if (numbers.includes(String(wanted)) || (isTarget && ports.some(({ name }) => name === wanted))) return undefined;
  const text = describeTarget(target);
  const member = isTarget ? "sectionName" : "port";
  if (wanted === undefined) return { member, message: `${text}: port is required`, suggestion: portList(numbers) };
  const behind = ports.find(({ targetPort }) => String(targetPort) === String(wanted));
  const suggestion =
    behind === undefined
      ? portList(numbers)
      : `${String(wanted)} is the targetPort; name the Service's own port ${String(behind["port"])}`;
  return { member, message: `${text} has no TCP port ${String(wanted)}`, suggestion };
}

function portList(numbers: readonly string[]): string {
  if (numbers.length === 0) return "add the port to the Service";
  return numbers.length === 1 ? `its port is ${numbers[0]}` : `its ports are ${numbers.join(", ")}`;
}

function missingEntry({ key }: Ref, target: KubeObject): MissingPart | undefined {
  if (typeof key !== "string" || key === "") return undefined;
  const entries = entryNames(target);
  if (entries.includes(key)) return undefined;
  const message = `${describeTarget(target)} has no entry ${key}`;
  return { member: "key", message, suggestion: suggestName(key, entries, "entries", target) };
}

/** Returns the entry names of a Secret or ConfigMap, never their values. */
export function entryNames(target: KubeObject): string[] {
  const holders = ["data", "stringData", "binaryData"].flatMap((field) => valuesAt(target, [field]));
  return [...new Set(holders.flatMap(({ value }) => Object.keys(value)))].sort();
}

function missingListener(ref: Ref, target: KubeObject): MissingPart | undefined {
  const { sectionName, port } = ref;
  const listeners = valuesAt(target, ["spec", "listeners", "*"]).map(({ value }) => value);
  const names = listeners.map(({ name }) => String(name));
  const text = describeTarget(target);
  if (typeof sectionName === "string" && !names.includes(sectionName)) {
    const message = `${text} has no listener ${sectionName}`;
    return { member: "sectionName", message, suggestion: suggestName(sectionName, names, "listeners", target) };
  }
  const onPort = listeners.filter(({ name }) => sectionName === undefined || name === sectionName);
  if (port === undefined || onPort.some((listener) => listener["port"] === port)) return undefined;
  const ports = [...new Set(onPort.map((listener) => String(listener["port"])))];
  const whose = typeof sectionName === "string" ? `listener ${sectionName}` : "listener";
  return {
    member: "port",
    message: `${text} has no ${whose} on port ${String(port)}`,
    suggestion: `it listens on ${ports.join(", ")}`,
  };
}

function missingSection(
  { sectionName }: Ref,
  target: KubeObject,
  names: readonly string[],
  what: string,
): MissingPart | undefined {
  if (typeof sectionName !== "string" || names.includes(sectionName)) return undefined;
  const message = `${describeTarget(target)} has no ${what} ${sectionName}`;
  const suggestion =
    names.length === 0 && what === "rule"
      ? `its rules have no names: give one the name ${sectionName}`
      : suggestName(sectionName, names, `${what}s`, target);
  return { member: "sectionName", message, suggestion };
}

function namesAt(target: KubeObject, pattern: string): string[] {
  return valuesAt(target, pattern.split(".")).flatMap(({ value: { name } }) =>
    typeof name === "string" ? [name] : [],
  );
}

function describeTarget(target: KubeObject): string {
  return describeRef(objectId(target));
}
