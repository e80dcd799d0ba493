/**
 * A real Kubernetes cluster of one node for tests: control plane, kubelet, containerd, kube-proxy and a load balancer's
 * stand-in, in a place of its own that vanishes with this process. Needs root and Debian's containerd, runc,
 * containernetworking-plugins, iproute2, iptables and nftables. Run as a program it keeps the node until Ctrl-C.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { NODE_NAME, startContainerd, startKubelet } from "./node/agents.ts";
import { startControlPlane } from "./node/control-plane.ts";
import { PAUSE_IMAGE, programImage } from "./node/images.ts";
import { openPit, type Pit } from "./node/pit.ts";
import { programs } from "./programs.ts";

const READY_WITHIN_MS = 180_000;
const NEEDED = ["containerd", "runc", "ip", "iptables", "nft", "nsenter", "unshare"];

export interface Node {
  /** Path of a kubeconfig with the rights of a cluster administrator. Its address is reached from inside only. */
  readonly kubeconfig: string;
  readonly pit: Pit;
  /** Runs kubectl. @returns what it printed. @throws with its messages when it fails. */
  kubectl(args: readonly string[], stdin?: string): Promise<string>;
  /** A command line of the machine outside that runs kubectl in there, without its arguments. */
  readonly enter: string;
  /** Makes the images of an archive known to the node. */
  importImages(archive: string): Promise<void>;
  /** Kills containerd, kubelet and kube-proxy, and starts them again. */
  crashAgents(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts an empty cluster; resolves when its node is ready for pods. Missing programs are built first, for minutes. */
export async function startNode(): Promise<Node> {
  const missing = NEEDED.filter((name) => spawnSync("sh", ["-c", `command -v ${name}`]).status !== 0);
  if (missing.length > 0)
    throw new Error(
      `a node needs ${missing.join(", ")}: apt-get install containerd runc containernetworking-plugins iproute2 iptables nftables`,
    );
  await programs("kubernetes");
  const binaries = await programs("node");
  const pit = await openPit();
  try {
    return await startIn(pit, binaries);
  } catch (error) {
    await pit.close();
    throw error;
  }
}

async function startIn(pit: Pit, binaries: string): Promise<Node> {
  await startContainerd(pit);
  const plane = await startControlPlane(pit, binaries);
  const { kubeconfig } = plane;
  const kubectl = (args: readonly string[], stdin?: string): Promise<string> =>
    pit.run([join(binaries, "kubectl"), "--kubeconfig", kubeconfig, ...args], stdin);
  const importImages = async (archive: string): Promise<void> => {
    await pit.run(["ctr", "--namespace", "k8s.io", "images", "import", archive]);
  };

  const crashAgents = async (): Promise<void> => {
    for (const name of ["containerd", "kubelet", "kube-proxy"]) await pit.kill(name);
    for (const name of ["containerd", "kube-proxy"]) pit.startAgain(name);
  };

  await holds("containerd answers", () => pit.run(["ctr", "version"]));
  await importImages(programImage(join(binaries, "pause"), [PAUSE_IMAGE]));
  await holds("the API server is ready", () => kubectl(["get", "--raw", "/readyz"]));
  await plane.startControllers();
  await startKubelet(pit, plane, binaries);
  const balancer = join(import.meta.dirname, "node/load-balancer.ts");
  pit.start("load-balancer", [process.execPath, "--import", import.meta.resolve("tsx"), balancer, kubeconfig]);
  // Pods of a namespace can only be made once its account is there.
  await holds("there is an account for pods", () => kubectl(["get", "serviceaccount", "default"]));
  await holds("the node has said hello", () => kubectl(["get", "node", NODE_NAME]));
  await kubectl(["wait", "--for=condition=Ready", `node/${NODE_NAME}`, `--timeout=${READY_WITHIN_MS}ms`]);
  const enter = `nsenter --target ${pit.process} --net ${join(binaries, "kubectl")} --kubeconfig ${kubeconfig}`;
  return { kubeconfig, pit, kubectl, enter, importImages, crashAgents, stop: () => pit.close() };
}

async function holds(what: string, check: () => Promise<unknown>): Promise<void> {
  const until = performance.now() + READY_WITHIN_MS;
  for (;;) {
    try {
      await check();
      return;
    } catch (cause) {
      if (performance.now() > until) throw new Error(`waited in vain: ${what}`, { cause });
      await sleep(100);
    }
  }
}

if (import.meta.main) {
  const node = await startNode();
  process.stdout.write(`${node.enter} get pods -A\n`);
  process.stderr.write("Ctrl-C stops it and removes everything\n");
}
