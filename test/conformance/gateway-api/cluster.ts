/** A cluster as a user has it after the installation: the Gateway API's kinds, ours, and the controller with our images. */
import { join } from "node:path";
import { importOurImages, installCharts } from "../../testbed/installation.ts";
import { startNode, type Node } from "../../testbed/node.ts";
import { programImage } from "../../testbed/node/images.ts";
import { programs } from "../../testbed/programs.ts";

const ECHO = "registry.k8s.io/gateway-api/echo-basic";
/** What the suites call their echo server. One program is all of them: each version answers what the ones before did. */
const ECHO_IMAGES = [
  `${ECHO}:v1.5.1`,
  `${ECHO}:v1.6.0-dev.2`,
  `${ECHO}:v1.6.0-dev.3`,
  "gcr.io/k8s-staging-gateway-api/echo-basic:v20251106-v1.3.0-263-g47c3435c",
];
const PICKER_IMAGE = "registry.k8s.io/gateway-api-inference-extension/epp:v1.2.0";
/** The suite waits for this name server to run but sends to it for UDPRoute alone, so something that waits will do. */
const NAME_SERVER_IMAGE = "registry.k8s.io/coredns/coredns:v1.12.2";

/** @param say is told what is being done */
export async function startConformanceCluster(say: (step: string) => void): Promise<Node> {
  say("building what is missing");
  const echo = join(await programs("conformance"), "echo-basic");
  const picker = join(await programs("inference"), "epp");
  say("starting a node");
  const node = await startNode();
  try {
    say("importing images");
    await node.importImages(programImage(echo, ECHO_IMAGES));
    await node.importImages(programImage(picker, [PICKER_IMAGE]));
    await node.importImages(programImage(join(await programs("node"), "pause"), [NAME_SERVER_IMAGE]));
    await importOurImages(node);
    say("installing gwproxy");
    await installCharts(node, { channel: "experimental", inference: true });
    await node.kubectl(["wait", "--for=condition=Accepted", "gatewayclass/gwproxy", "--timeout=60s"]);
    return node;
  } catch (error) {
    await node.stop();
    throw error;
  }
}
