/**
 * The cluster form of a route change: a real API server, `gwproxy controller` and `gwproxy proxy` as processes of their
 * own, and patches of one HTTPRoute sent straight to the API server. The webhook takes no part: it delays the write.
 */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createKubernetesClient } from "../../src/sources/kubernetes/client.ts";
import { defineGatewayKinds, defineOurKinds } from "../support/cluster.ts";
import { startApiServer } from "../testbed/api-server.ts";
import { GWPROXY_PORT, type Peer } from "./peers.ts";
import { start, type Running } from "./process.ts";
import { measurePropagation, routeTo, type Changes, type Propagation } from "./propagation.ts";

const ROOT = join(import.meta.dirname, "../..");
const BIN = join(ROOT, "bin/gwproxy.mjs");
const [GATEWAY_PORT, XDS_PORT, HEALTH_PORT] = [18_120, 18_121, 18_122] as const;
const START_LIMIT_MS = 60_000;
const ROUTES = "/apis/gateway.networking.k8s.io/v1/namespaces/default/httproutes";

/** Milliseconds from the API server's answer to the write to live traffic. */
export async function measureCluster(options: Changes): Promise<Propagation> {
  const server = await startApiServer();
  const processes: Running[] = [];
  const client = await createKubernetesClient(server.kubeconfig);
  try {
    await defineGatewayKinds(server);
    await defineOurKinds(server);
    const controller = ["controller", "-k", server.kubeconfig, "--xds-address", `127.0.0.1:${XDS_PORT}`];
    processes.push(
      await startOwn([...controller, "--health-address", `127.0.0.1:${HEALTH_PORT}`], "readyz", HEALTH_PORT),
    );
    await server.kubectl(["apply", "-f", manifestsOf(options.folder, server.directory)]);
    await client.request({ method: "POST", path: ROUTES, body: routeTo(0) });
    const addresses = ["--admin-address", "--metrics-address", "--readiness-address"];
    const flags = addresses.flatMap((flag) => [flag, "127.0.0.1:0"]);
    const plane = ["proxy", "--xds-address", `127.0.0.1:${XDS_PORT}`, "--gateway", "default/bench", ...flags];
    processes.push(await startOwn([...plane, "--bind-address", "127.0.0.1"], "plain", GATEWAY_PORT));

    const peer: Peer = { ...options.peer, port: GATEWAY_PORT };
    return await measurePropagation("cluster", { ...options, peer }, async (number) => {
      await client.request({
        method: "PATCH",
        path: `${ROUTES}/changing`,
        contentType: "application/json-patch+json",
        body: [{ op: "replace", path: "/spec/rules/0/matches/0/path/value", value: `/changing/${number}` }],
      });
      return performance.now();
    });
  } finally {
    client.close();
    for (const running of processes.toReversed()) await running.stop();
    await server.stop();
  }
}

function startOwn(args: readonly string[], path: string, port: number): Promise<Running> {
  const command = { file: process.execPath, args: [BIN, ...args, "--log-level", "warn"] };
  return start(command, new URL(`http://127.0.0.1:${port}/${path}`), START_LIMIT_MS);
}

/** The manifests of the file form, with a port of their own. @returns their folder */
function manifestsOf(source: string, directory: string): string {
  const folder = join(directory, "manifests");
  mkdirSync(folder);
  for (const file of ["backends.yaml", "routes.yaml", "policies.yaml"]) cpSync(join(source, file), join(folder, file));
  const gateway = readFileSync(join(source, "gateway.yaml"), "utf8");
  writeFileSync(join(folder, "gateway.yaml"), gateway.replace(`port: ${GWPROXY_PORT}`, `port: ${GATEWAY_PORT}`));
  return folder;
}
