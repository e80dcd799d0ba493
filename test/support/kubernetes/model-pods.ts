/**
 * Pods of an InferencePool on an API server without nodes: each is a simulated model server on an address of loopback, and
 * this stands in for its kubelet. Its label chooses it for the pool `llama`.
 */
import {
  CoreV1Api,
  KubeConfig,
  PatchStrategy,
  setHeaderOptions,
  type V1Pod,
  type V1PodStatus,
} from "@kubernetes/client-node";
import type { ProofContext } from "../proofs/prove.ts";
import { startModelServer, type ModelServer } from "../servers/model-server.ts";

const NAMESPACE = "default";
/** Longer than any test: a pod that is deleted terminates until its server has ended. */
const GRACE_SECONDS = 3_600;

export class ModelPods {
  /** By name of the pod. */
  readonly servers: Map<string, ModelServer> = new Map();
  readonly #context: Pick<ProofContext, "after">;
  readonly #api: CoreV1Api;
  readonly #port: number;
  #made = 0;

  /** @param port of each model server */
  constructor(context: Pick<ProofContext, "after">, kubeconfig: string, port: number) {
    const config = new KubeConfig();
    config.loadFromFile(kubeconfig);
    this.#context = context;
    this.#api = config.makeApiClient(CoreV1Api);
    this.#port = port;
  }

  /** Starts a pod that is ready. @returns its name */
  async add(): Promise<string> {
    const number = ++this.#made;
    const name = `llama-${number}`;
    // A pod that comes back has another address.
    const server = await startModelServer(this.#context, `127.0.1.${number}`, this.#port);
    this.servers.set(name, server);
    const body: V1Pod = {
      metadata: { name, labels: { app: "llama" } },
      // Without a node a pod that is deleted is gone at once.
      spec: { nodeName: "node", containers: [{ name: "model", image: "model" }] },
    };
    await this.#api.createNamespacedPod({ namespace: NAMESPACE, body });
    await this.#setStatus(name, {
      phase: "Running",
      podIP: server.address,
      podIPs: [{ ip: server.address }],
      conditions: [{ type: "Ready", status: "True" }],
    });
    return name;
  }

  /** Deletes a pod, which goes on answering until `end`. */
  async terminate(name: string): Promise<void> {
    await this.#api.deleteNamespacedPod({ namespace: NAMESPACE, name, gracePeriodSeconds: GRACE_SECONDS });
  }

  /** Ends the server of a pod that terminates, and then the pod. */
  async end(name: string): Promise<void> {
    await this.servers.get(name)?.stop();
    await this.remove(name);
  }

  /** Ends the server of a pod and leaves the pod as it is, ready. */
  crash(name: string): void {
    this.servers.get(name)?.crash();
  }

  /** Removes a pod at once. */
  async remove(name: string): Promise<void> {
    this.servers.delete(name);
    await this.#api.deleteNamespacedPod({ namespace: NAMESPACE, name, gracePeriodSeconds: 0 });
  }

  /** Lengths of the queues, as a picker that knows all about these pods has them. */
  queues(): Record<string, number> {
    return Object.fromEntries([...this.servers].map(([name, { queue }]) => [name, queue]));
  }

  async #setStatus(name: string, status: V1PodStatus): Promise<void> {
    const merge = setHeaderOptions("Content-Type", PatchStrategy.MergePatch);
    await this.#api.patchNamespacedPodStatus({ name, namespace: NAMESPACE, body: { status } }, merge);
  }
}
