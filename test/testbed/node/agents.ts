/** containerd, kubelet and kube-proxy: what makes the pit a node. */
import { writeFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { stringify } from "yaml";
import { NODE_ADDRESS, POD_RANGE } from "./addresses.ts";
import type { ControlPlane } from "./control-plane.ts";
import { PAUSE_IMAGE } from "./images.ts";
import type { Pit } from "./pit.ts";

export const NODE_NAME = "node";
/** Of the pit: its /run is its own. */
const SOCKET = "/run/containerd/containerd.sock";

export async function startContainerd(pit: Pit): Promise<void> {
  const networks = join(pit.directory, "cni");
  await mkdir(networks, { recursive: true });
  await writeFile(join(networks, "10-bridge.conflist"), JSON.stringify(NETWORK));
  const path = join(pit.directory, "containerd.toml");
  await writeFile(path, containerdConfiguration(join(pit.directory, "containerd"), networks));
  pit.start("containerd", ["containerd", "--config", path]);
}

/** Needs an API server that answers. kubelet ends at once as long as containerd is not there, so it is kept. @param binaries the folder of the programs */
export async function startKubelet(pit: Pit, plane: ControlPlane, binaries: string): Promise<void> {
  const own = await plane.kubeconfigOf("kubelet", `/O=system:nodes/CN=system:node:${NODE_NAME}`);
  const path = join(pit.directory, "kubelet.yaml");
  await writeFile(path, stringify(kubeletConfiguration(pit.directory, plane.authority.ca)));
  await writeFile(join(pit.directory, "resolv.conf"), "");
  const name = `--hostname-override=${NODE_NAME}`;
  const place = [name, `--node-ip=${NODE_ADDRESS}`];
  pit.keep("kubelet", [join(binaries, "kubelet"), `--config=${path}`, `--kubeconfig=${own}`, ...place]);
  const proxy = await plane.kubeconfigOf("kube-proxy", "/CN=system:kube-proxy");
  pit.start("kube-proxy", [join(binaries, "kube-proxy"), `--kubeconfig=${proxy}`, name, ...PROXY_FLAGS]);
}

const NETWORK = {
  cniVersion: "0.4.0",
  name: "pods",
  plugins: [
    {
      type: "bridge",
      bridge: "pods0",
      isGateway: true,
      ipMasq: false,
      hairpinMode: true,
      ipam: {
        type: "host-local",
        ranges: [[{ subnet: "10.244.0.0/24" }]],
        routes: [{ dst: "0.0.0.0/0" }],
      },
    },
  ],
};

const PROXY_FLAGS = [
  "--proxy-mode=nftables",
  `--cluster-cidr=${POD_RANGE}`,
  `--bind-address=${NODE_ADDRESS}`,
  // The limits of connection tracking belong to the machine outside.
  "--conntrack-max-per-core=0",
  "--conntrack-tcp-timeout-established=0",
  "--conntrack-tcp-timeout-close-wait=0",
  `--healthz-bind-address=${NODE_ADDRESS}:10256`,
  `--metrics-bind-address=${NODE_ADDRESS}:10249`,
  "--nodeport-addresses=10.88.0.0/24",
];

function containerdConfiguration(root: string, networks: string): string {
  return `version = 2
root = "${root}"
state = "/run/containerd"
[grpc]
  address = "${SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE_IMAGE}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "${networks}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
`;
}

function kubeletConfiguration(directory: string, ca: string): object {
  return {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    cgroupDriver: "cgroupfs",
    failCgroupV1: false,
    failSwapOn: false,
    containerRuntimeEndpoint: `unix://${SOCKET}`,
    authentication: { anonymous: { enabled: false }, webhook: { enabled: true }, x509: { clientCAFile: ca } },
    authorization: { mode: "Webhook" },
    clusterDomain: "cluster.local",
    clusterDNS: ["10.96.0.10"],
    resolvConf: join(directory, "resolv.conf"),
    enforceNodeAllocatable: [],
    evictionHard: { "memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%" },
    // There is no registry to bring an image back from.
    imageGCHighThresholdPercent: 100,
    volumePluginDir: join(directory, "volume-plugins"),
    podLogsDir: join(directory, "pods"),
    serializeImagePulls: false,
    maxPods: 200,
    allowedUnsafeSysctls: [],
  };
}
