/** Sets up what most tests on a real API server need: the kinds, a controller, and a data plane of the Gateway `gw`. */
import { globSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startApiServer, type ApiServer } from "../../testbed/api-server.ts";
import { gatewayApiCrds, inferenceCrds } from "./gateway-api-crds.ts";
import { startGwproxy, type GwproxyProcess } from "../gateway/process.ts";
import type { ProofContext } from "../proofs/prove.ts";
import { renderChart, type ChartObject } from "./chart.ts";

const CRDS = join(import.meta.dirname, "../../../crds");

type Kubectl = Pick<ApiServer, "kubectl">;

/** Resolves when objects of our kinds can be created. */
export async function defineOurKinds(server: Kubectl): Promise<void> {
  const files = globSync("*.yaml", { cwd: CRDS }).flatMap((file) => ["-f", join(CRDS, file)]);
  await server.kubectl(["apply", ...files]);
  await established(server);
}

/** Resolves when objects of the Gateway API's kinds can be created. */
export async function defineGatewayKinds(server: ApiServer): Promise<void> {
  await server.kubectl(["apply", "-f", await gatewayApiCrds()]);
  await established(server);
}

/** Resolves when InferencePools can be created. */
export async function defineInferenceKinds(server: Kubectl): Promise<void> {
  await server.kubectl(["apply", ...(await inferenceCrds()).flatMap((file) => ["-f", file])]);
  await established(server);
}

async function established(server: Kubectl): Promise<void> {
  await server.kubectl(["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
}

/** Starts an API server with all kinds and the namespace of the controller; it stops with the test. */
export async function startCluster(context: Pick<ProofContext, "after">): Promise<ApiServer> {
  const server = await startApiServer();
  context.after(() => server.stop());
  await defineGatewayKinds(server);
  await defineOurKinds(server);
  await server.kubectl(["create", "namespace", "gwproxy-system"]);
  return server;
}

/** Flags that the chart gives to the controller as variables. */
export const CHART_FLAGS: readonly string[] = ["--create-gateway-class", "false", "--deployment-name", "gwproxy"];

/**
 * Installs the chart without its webhook, which no pod would serve.
 * @returns the path of a kubeconfig with only the rights of the controller's service account
 */
export async function controllerKubeconfig(server: ApiServer, values: object = {}): Promise<string> {
  const objects = await renderChart({ webhook: { enabled: false }, ...values }, ["--skip-tests"]);
  return installForAccount(server, objects, "gwproxy");
}

/** Applies objects of the chart. @returns the path of a kubeconfig with only the rights of one of its service accounts */
export async function installForAccount(
  server: ApiServer,
  objects: readonly ChartObject[],
  account: string,
): Promise<string> {
  await server.kubectl(["apply", "-f", "-"], JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }));
  const token = await server.kubectl(["create", "token", account, "-n", "gwproxy-system"]);
  const config = JSON.parse(await readFile(server.kubeconfig, "utf8")) as { users: readonly { name: string }[] };
  config.users = config.users.map(({ name }) => ({ name, user: { token } }));
  const path = join(server.directory, `${account}.kubeconfig`);
  await writeFile(path, JSON.stringify(config), { mode: 0o600 });
  return path;
}

/** Starts a controller on loopback that serves data planes at the port `xds`; resolves when it does. */
export async function startController(
  context: Pick<ProofContext, "after">,
  server: ApiServer,
  xds: number,
  { kubeconfig = server.kubeconfig, more = [] }: { kubeconfig?: string; more?: readonly string[] } = {},
): Promise<GwproxyProcess> {
  const place = ["-k", kubeconfig, "--namespace", "gwproxy-system"];
  const addresses = [
    "--xds-address",
    `127.0.0.1:${xds}`,
    "--health-address",
    "127.0.0.1:0",
    "--metrics-address",
    "127.0.0.1:0",
    "--admin-address",
    "127.0.0.1:0",
  ];
  // The backends of tests are processes of this machine.
  const local = "--allow-local-backends";
  const controller = startGwproxy(context, ["controller", ...place, ...addresses, local, ...more]);
  await controller.printed("serving data planes");
  return controller;
}

/** Starts a data plane of the Gateway `gw` that follows the controller at the port `xds`. */
export function startPlane(context: Pick<ProofContext, "after">, xds: number): GwproxyProcess {
  const follow = ["--xds-address", `http://127.0.0.1:${xds}`, "--gateway", "default/gw"];
  const own = ["--admin-address", "--metrics-address", "--readiness-address"];
  const addresses = own.flatMap((flag) => [flag, "127.0.0.1:0"]);
  return startGwproxy(context, ["proxy", ...follow, "--bind-address", "127.0.0.1", ...addresses]);
}
