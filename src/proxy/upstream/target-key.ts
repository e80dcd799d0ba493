/** What tells targets apart: those of one key share their connections, those of two never do (proxying.md 4.2). */
import { toJsonString } from "@bufbuild/protobuf";
import { BackendTcpSchema, Reach } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { tlsKey } from "./dial/tls.ts";
import type { UpstreamTarget } from "./upstream.ts";

const known = new WeakMap<UpstreamTarget, string>();

/** Holds private keys: it must not be logged. */
export function targetKey(target: UpstreamTarget): string {
  let key = known.get(target);
  if (key === undefined) known.set(target, (key = keyOf(target)));
  return key;
}

function keyOf({ host, port, unixPath, reach = Reach.UNSPECIFIED, tls, tcp, proxy }: UpstreamTarget): string {
  const place = unixPath === "" ? `${host} ${port}` : `unix ${unixPath} ${host}`;
  const socket = tcp === undefined ? "" : toJsonString(BackendTcpSchema, tcp);
  return `${place}|${reach}|${socket}|${proxy?.key ?? ""}|${tls === undefined ? "" : tlsKey(tls)}`;
}
