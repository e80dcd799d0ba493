/** Translates `static` of a GwBackend: one host and port, or a Unix socket. `translate.ts` uses it. */
import { create } from "@bufbuild/protobuf";
import type { StaticBackend as ApiStatic } from "../../../generated/types/backend.ts";
import {
  DestinationScope,
  StaticBackendSchema,
  type StaticBackend,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { isLocalHost, withoutBrackets } from "../../lib/network/local-address.ts";

export function translateStatic(
  { host, port, unixPath }: ApiStatic,
  destinationScope: DestinationScope,
): StaticBackend {
  return create(StaticBackendSchema, {
    host: withoutBrackets(host ?? ""),
    port: port ?? 0,
    unixPath: unixPath ?? "",
    destinationScope,
  });
}

/** Folder in which data plane pods mount the socket of the SPIFFE Workload API. */
const WORKLOAD_FOLDER = "/spiffe-workload-api";

/**
 * Rejects a backend that leads to the data plane's own machine, as far as the object itself shows it. Host names are
 * checked again when the data plane dials them.
 * @returns undefined when the backend may be served
 */
export function checkDestination(
  { host = "", unixPath = "" }: ApiStatic,
  destinationScope: DestinationScope,
): { readonly path: "host" | "unixPath"; readonly message: string } | undefined {
  if (destinationScope === DestinationScope.UNSPECIFIED) return undefined;
  const path = normalizePath(unixPath);
  if (path === WORKLOAD_FOLDER || path.startsWith(`${WORKLOAD_FOLDER}/`)) {
    const message = `"${unixPath}" is mounted for identities of the data plane itself; name a socket of your own`;
    return { path: "unixPath", message };
  }
  if (destinationScope !== DestinationScope.REMOTE || !isLocalHost(host)) return undefined;
  const remedy = "name another host, or run the controller with --allow-local-backends";
  return { path: "host", message: `"${host}" is on the machine of the data plane or its link; ${remedy}` };
}

/** Resolves "." and ".." segments, so that a path cannot disguise the folder it leads to. */
function normalizePath(path: string): string {
  const segments: string[] = [];
  for (const segment of path.split("/")) {
    if (segment === "..") segments.pop();
    else if (segment !== "" && segment !== ".") segments.push(segment);
  }
  return `/${segments.join("/")}`;
}
