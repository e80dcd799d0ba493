/** Translates `custom`, a service that is no well-known provider. `index.ts` uses it. */
import type { CustomSettings } from "../../../../generated/types/llm.ts";
import { nameKey } from "../../../api/refs.ts";
import { isInferencePool, resolvePool } from "../../references/backend-refs.ts";
import type { ProviderContext, ProviderPart } from "./provider.ts";

export function translateCustom(
  { model, providerOverride, formats, backendRef }: CustomSettings,
  context: ProviderContext,
): ProviderPart | undefined {
  const backend = backendRef === undefined ? "" : resolveConnection(backendRef, context);
  if (backend === undefined) return undefined;
  return {
    identity: providerOverride ?? "custom",
    model: model ?? "",
    formats: formats.map(({ type, path }) => ({ type, path: path ?? "" })),
    backend,
  };
}

type ConnectionRef = NonNullable<CustomSettings["backendRef"]>;

/** @returns the key of the Service port or of the InferencePool, or undefined after an error was reported */
function resolveConnection(
  ref: ConnectionRef,
  { namespace, services, pools, read, error }: ProviderContext,
): string | undefined {
  const path = "custom.backendRef";
  // A pool has ports of its own. The port is read here all the same, because an unread field is reported as unsupported.
  const { port: namedPort } = ref;
  if (isInferencePool({ group: ref.group ?? "", kind: ref.kind ?? "Service" })) {
    const pool = resolvePool({ namespace, name: ref.name }, pools, read);
    if (typeof pool === "string") return pool;
    error(path, pool.message);
    return undefined;
  }
  if ((ref.group ?? "") !== "" || (ref.kind ?? "Service") !== "Service") {
    error(path, `backendRef of kind ${ref.kind} is not served yet`);
    return undefined;
  }
  const key = nameKey({ namespace, name: ref.name });
  const service = read.get(services, key);
  const port = service?.ports.find((candidate) => candidate.port === namedPort);
  if (port !== undefined) return port.key;
  error(path, service === undefined ? `Service ${key} not found` : `Service ${key} has no TCP port ${namedPort}`);
  return undefined;
}
