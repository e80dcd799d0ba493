/** `static`: one host and port, or a Unix socket. */
import { create } from "@bufbuild/protobuf";
import type { StaticBackend as ApiStatic } from "../../../generated/types/backend.ts";
import { StaticBackendSchema, type StaticBackend } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";

export function translateStatic({ host, port, unixPath }: ApiStatic): StaticBackend {
  return create(StaticBackendSchema, { host: withoutBrackets(host ?? ""), port: port ?? 0, unixPath: unixPath ?? "" });
}

/** "[::1]" is how a URL writes an IPv6 address, not how it is dialled. */
export function withoutBrackets(host: string): string {
  return host.startsWith("[") && host.endsWith("]") ? host.slice(1, -1) : host;
}
