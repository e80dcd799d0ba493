/** etcd, kube-apiserver, kube-controller-manager and kube-scheduler of a node's cluster, inside its pit. */
import { join } from "node:path";
import { makeAuthority, makeTokenKeys, type Authority, type KeyPair } from "../certificates.ts";
import { writeKubeconfig } from "../kubeconfig.ts";
import { NODE_ADDRESS, POD_RANGE, SERVICE_RANGE } from "./addresses.ts";
import type { Pit } from "./pit.ts";

const PORT = 6443;
const SERVER = `https://${NODE_ADDRESS}:${PORT}`;
const ETCD = "http://127.0.0.1:2379";
const ETCD_PEER = "http://127.0.0.1:2380";
const CLIENT = "extendedKeyUsage=clientAuth";
/** The first address of the Services is that of the API server. */
const API_NAMES = [
  `IP:${NODE_ADDRESS}`,
  "IP:10.96.0.1",
  "IP:127.0.0.1",
  "DNS:localhost",
  "DNS:kubernetes.default.svc",
  "DNS:kubernetes.default.svc.cluster.local",
];

export interface ControlPlane {
  /** Path of a kubeconfig with the rights of a cluster administrator. */
  readonly kubeconfig: string;
  readonly authority: Authority;
  /** Makes a client of the given identity. @param subject as "/O=system:nodes/CN=system:node:one" @returns the path of its kubeconfig */
  kubeconfigOf(name: string, subject: string): Promise<string>;
  /** What makes pods of Deployments and places them. Ends at once unless the API server is ready. */
  startControllers(): Promise<void>;
}

/** Starts storage and API server; resolves before they are ready. @param binaries the folder of the programs */
export async function startControlPlane(pit: Pit, binaries: string): Promise<ControlPlane> {
  const keys = join(pit.directory, "pki");
  const authority = await makeAuthority(keys);
  const server = await authority.issue("server", "/CN=kube-apiserver", `subjectAltName=${API_NAMES.join(",")}`);
  const kubelets = await authority.issue("kubelets", "/O=system:masters/CN=kube-apiserver", CLIENT);
  const tokens = await makeTokenKeys(keys);
  const kubeconfigOf = async (name: string, subject: string): Promise<string> => {
    const client = await authority.issue(name, subject, CLIENT);
    const path = join(pit.directory, name === "admin" ? "kubeconfig" : `${name}.kubeconfig`);
    return writeKubeconfig(path, { server: SERVER, ca: authority.ca, client });
  };
  const kubeconfig = await kubeconfigOf("admin", "/O=system:masters/CN=admin");

  pit.start("etcd", [join(binaries, "etcd"), ...etcdFlags(pit.directory)]);
  const apiServer = apiServerFlags({ authority, server, kubelets, tokens, keys });
  pit.start("kube-apiserver", [join(binaries, "kube-apiserver"), ...apiServer]);
  return {
    kubeconfig,
    authority,
    kubeconfigOf,
    async startControllers() {
      const manager = await kubeconfigOf("controller-manager", "/CN=system:kube-controller-manager");
      const managing = managerFlags(manager, authority, tokens.key);
      pit.start("kube-controller-manager", [join(binaries, "kube-controller-manager"), ...managing]);
      const scheduler = await kubeconfigOf("scheduler", "/CN=system:kube-scheduler");
      const scheduling = [...clientFlags(scheduler), "--secure-port=10259"];
      pit.start("kube-scheduler", [join(binaries, "kube-scheduler"), ...scheduling]);
    },
  };
}

function etcdFlags(directory: string): string[] {
  return [
    `--data-dir=${join(directory, "etcd")}`,
    "--unsafe-no-fsync",
    "--log-level=error",
    `--listen-client-urls=${ETCD}`,
    `--advertise-client-urls=${ETCD}`,
    `--listen-peer-urls=${ETCD_PEER}`,
    `--initial-advertise-peer-urls=${ETCD_PEER}`,
    `--initial-cluster=default=${ETCD_PEER}`,
  ];
}

interface ApiServerFiles {
  readonly authority: Authority;
  readonly server: KeyPair;
  /** The client that asks kubelets for logs. */
  readonly kubelets: KeyPair;
  readonly tokens: { readonly key: string; readonly publicKey: string };
  /** A folder for certificates of its own. */
  readonly keys: string;
}

function apiServerFlags({ authority, server, kubelets, tokens, keys }: ApiServerFiles): string[] {
  return [
    `--etcd-servers=${ETCD}`,
    `--bind-address=${NODE_ADDRESS}`,
    `--advertise-address=${NODE_ADDRESS}`,
    `--secure-port=${PORT}`,
    `--tls-cert-file=${server.cert}`,
    `--tls-private-key-file=${server.key}`,
    `--client-ca-file=${authority.ca}`,
    `--cert-dir=${keys}`,
    // Nothing resolves the name of the node.
    "--kubelet-preferred-address-types=InternalIP",
    `--kubelet-client-certificate=${kubelets.cert}`,
    `--kubelet-client-key=${kubelets.key}`,
    `--service-account-key-file=${tokens.publicKey}`,
    `--service-account-signing-key-file=${tokens.key}`,
    "--service-account-issuer=https://kubernetes.default.svc",
    `--service-cluster-ip-range=${SERVICE_RANGE}`,
    "--authorization-mode=Node,RBAC",
    "--enable-admission-plugins=NodeRestriction",
    "--allow-privileged",
  ];
}

function managerFlags(kubeconfig: string, authority: Authority, tokenKey: string): string[] {
  return [
    ...clientFlags(kubeconfig),
    "--secure-port=10257",
    "--use-service-account-credentials=true",
    `--service-account-private-key-file=${tokenKey}`,
    `--root-ca-file=${authority.ca}`,
    `--cluster-signing-cert-file=${authority.ca}`,
    `--cluster-signing-key-file=${authority.key}`,
    `--cluster-cidr=${POD_RANGE}`,
    "--allocate-node-cidrs=true",
    `--service-cluster-ip-range=${SERVICE_RANGE}`,
  ];
}

function clientFlags(kubeconfig: string): string[] {
  return [
    `--kubeconfig=${kubeconfig}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
    "--bind-address=127.0.0.1",
    "--leader-elect=false",
  ];
}
