/** Tests of `/debug/trace`: a data plane of one route, and policies of that route. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { TestContext } from "node:test";
import type { AuthorizationAction, PolicySchema } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Resource } from "../../../src/ir/resource.ts";
import { listener, route, startDataPlane, staticBackend, to, type DataPlane } from "./data-plane.ts";
import { startUpstream } from "../servers/upstream.ts";

export const ON_ROUTE = { target: { case: "route", value: "httproute/default/r" } } as const;

export function rulesOfRoute(
  action: AuthorizationAction,
  ...expressions: string[]
): MessageInitShape<typeof PolicySchema> {
  return {
    targets: [ON_ROUTE],
    units: [{ unit: { case: "authorization", value: { rules: [{ action, expressions }] } } }],
  };
}

export async function startTracedPlane(t: TestContext, more: Resource[] = [], status = 200): Promise<DataPlane> {
  const upstream = await startUpstream((_request, response) => void response.writeHead(status).end("hello"));
  t.after(() => upstream.close());
  const plane = await startDataPlane([listener(), route("r", [to("b")]), staticBackend("b", upstream.port), ...more]);
  t.after(() => plane.proxy.close());
  return plane;
}
