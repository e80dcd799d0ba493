/** The key of a target in the client's table of pools: equal targets share connections, different ones never do. */
import { toJsonString } from "@bufbuild/protobuf";
import { BackendTcpSchema, DestinationScope } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { tlsKey } from "./dial/tls.ts";
import type { UpstreamTarget } from "./dial/connection-settings.ts";

const known = new WeakMap<UpstreamTarget, string>();

/** The key contains private keys and must not be logged. */
export function targetKey(target: UpstreamTarget): string {
  let key = known.get(target);
  if (key === undefined) known.set(target, (key = keyOf(target)));
  return key;
}

function keyOf({
  host,
  port,
  unixPath,
  destinationScope = DestinationScope.UNSPECIFIED,
  tls,
  tcp,
  proxy,
}: UpstreamTarget): string {
  const place = unixPath === "" ? `${host} ${port}` : `unix ${unixPath} ${host}`;
  const socket = tcp === undefined ? "" : toJsonString(BackendTcpSchema, tcp);
  return `${place}|${destinationScope}|${socket}|${proxy?.key ?? ""}|${tls === undefined ? "" : tlsKey(tls)}`;
}
