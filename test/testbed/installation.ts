/** Installs gwproxy on a node as users do: with our images, the Gateway API's definitions and both charts. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { gatewayApiCrds, pickerCrds } from "../support/kubernetes/gateway-api-crds.ts";
import type { Node } from "./node.ts";
import { programs } from "./programs.ts";

const ROOT = join(import.meta.dirname, "../..");
export const NAMESPACE = "gwproxy-system";
/** No name server answers on the node, so data planes reach the controller by an address. */
const ADDRESS = "10.96.0.78";
const CONTROLLER = { service: { clusterIP: ADDRESS }, extraEnv: { GWPROXY_XDS_SERVICE_HOST: ADDRESS } };

/** Values of the chart, beside those that the node needs. */
interface Values {
  readonly controller?: { readonly replicaCount: number };
  readonly inferenceExtension?: { readonly enabled: boolean };
  readonly proxy?: { readonly ambientIdentityHosts: readonly string[] };
}

/** Runs Helm on the node, in the namespace of the controller. @returns what it printed */
export async function runHelm(node: Node, args: readonly string[], values: object = {}): Promise<string> {
  const helm = join(await programs("helm"), "helm");
  const where = ["--kubeconfig", node.kubeconfig, "--namespace", NAMESPACE];
  return node.pit.run([helm, ...args, ...where], JSON.stringify(values));
}

/** Packs our images and makes them known to the node. */
export async function importOurImages(node: Node): Promise<void> {
  const archive = join(node.pit.directory, "images.tar");
  await promisify(execFile)(process.execPath, [join(ROOT, "tools/image.ts"), archive]);
  await node.importImages(archive);
}

export interface Installation {
  readonly channel?: "standard" | "experimental";
  /** With the inference extension of the Gateway API and its definitions. */
  readonly inference?: boolean;
}

/** Installs both charts and waits until controller and webhook are ready. Our images have to be there. */
export async function installCharts(
  node: Node,
  { channel = "standard", inference = false }: Installation = {},
): Promise<void> {
  // More than an annotation holds, so the server has to do it.
  const folder = channel === "standard" ? "-f" : "-k";
  await node.kubectl(["apply", "--server-side", folder, await gatewayApiCrds(channel)]);
  if (inference) await node.kubectl(["apply", "--server-side", "-f", await pickerCrds()]);
  const charts = join(ROOT, "chart");
  await runHelm(node, ["install", "gwproxy-crds", join(charts, "gwproxy-crds"), "--create-namespace"]);
  await node.kubectl(["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
  await changeRelease(node, "install", { inferenceExtension: { enabled: inference } });
}

/** Installs or upgrades the release. @param values in addition to those that the node needs */
export async function changeRelease(node: Node, action: "install" | "upgrade", values: Values = {}): Promise<void> {
  const chart = join(ROOT, "chart/gwproxy");
  const wait = ["--wait", "--timeout", "180s"];
  await runHelm(node, [action, "gwproxy", chart, "--values", "-", ...wait], {
    ...values,
    controller: { ...CONTROLLER, ...values.controller },
  });
}
