/**
 * Stands in for the load balancer of a cloud: each Service of type LoadBalancer gets an address of the range, the one that
 * it asks for if that is inside and free. kube-proxy routes what is sent there. A Service that asks for another address
 * stays without. Run as a program with the path of a kubeconfig.
 */
import {
  CoreV1Api,
  KubeConfig,
  makeInformer,
  PatchStrategy,
  setHeaderOptions,
  type V1Service,
} from "@kubernetes/client-node";
import { BALANCER_RANGE } from "./addresses.ts";

const PREFIX = BALANCER_RANGE.replace(/0\.0\/16$/, "");

/** Which Service, by its uid, has which address. */
class AddressBook {
  readonly #owners = new Map<string, string>();

  /** @returns the address of the Service; undefined when it asks for one that cannot be had */
  give(uid: string, wanted: string | undefined): string | undefined {
    if (wanted !== undefined) return this.#take(uid, wanted) ? wanted : undefined;
    const known = [...this.#owners].find(([, owner]) => owner === uid)?.[0];
    if (known !== undefined) return known;
    // The lower half is for those that ask.
    for (let number = 0x8001; number < 0xffff; number++) {
      const address = `${PREFIX}${number >> 8}.${number & 255}`;
      if (this.#take(uid, address)) return address;
    }
    return undefined;
  }

  forget(uid: string): void {
    for (const [address, owner] of this.#owners) if (owner === uid) this.#owners.delete(address);
  }

  #take(uid: string, address: string): boolean {
    if (!address.startsWith(PREFIX)) return false;
    const owner = this.#owners.get(address);
    if (owner !== undefined && owner !== uid) return false;
    this.#owners.set(address, uid);
    return true;
  }
}

async function balance(kubeconfig: string): Promise<void> {
  const config = new KubeConfig();
  config.loadFromFile(kubeconfig);
  const api = config.makeApiClient(CoreV1Api);
  const book = new AddressBook();
  const informer = makeInformer(config, "/api/v1/services", () => api.listServiceForAllNamespaces());
  const look = (service: V1Service): void => {
    serve(api, book, service).catch((error: unknown) => process.stderr.write(`${String(error)}\n`));
  };
  informer.on("add", look);
  informer.on("update", look);
  informer.on("delete", (service) => book.forget(service.metadata?.uid ?? ""));
  // The API server may end a watch whenever it likes.
  informer.on("error", () => setTimeout(() => void informer.start(), 200));
  await informer.start();
}

async function serve(api: CoreV1Api, book: AddressBook, { metadata, spec, status }: V1Service): Promise<void> {
  if (spec?.type !== "LoadBalancer" || metadata?.uid === undefined) return;
  const { name = "", namespace = "", uid } = metadata;
  const address = book.give(uid, spec.loadBalancerIP);
  const given = status?.loadBalancer?.ingress?.[0]?.ip;
  if (address === given) return;
  const ingress = address === undefined ? [] : [{ ip: address, ipMode: "VIP" }];
  const body = { status: { loadBalancer: { ingress } } };
  const merge = setHeaderOptions("Content-Type", PatchStrategy.MergePatch);
  await api.patchNamespacedServiceStatus({ name, namespace, body }, merge);
}

await balance(process.argv[2] ?? "");
