/** A cluster as a user has it after the installation: the Gateway API's kinds, ours, and the controller with our images. */
import { join } from "node:path";
import { importOurImages, installCharts } from "../../testbed/installation.ts";
import { startNode, type Node } from "../../testbed/node.ts";
import { programImage } from "../../testbed/node/images.ts";
import { programs } from "../../testbed/programs.ts";

const ECHO = "registry.k8s.io/gateway-api/echo-basic";
const ECHO_IMAGES = [`${ECHO}:v1.5.1`, `${ECHO}:v1.6.0-dev.2`, `${ECHO}:v1.6.0-dev.3`];
/** The suite waits for this name server to run but sends to it for UDPRoute alone, so something that waits will do. */
const NAME_SERVER_IMAGE = "registry.k8s.io/coredns/coredns:v1.12.2";

/** @param say is told what is being done */
export async function startConformanceCluster(say: (step: string) => void): Promise<Node> {
  say("building what is missing");
  const suite = await programs("conformance");
  say("starting a node");
  const node = await startNode();
  try {
    say("importing images");
    await node.importImages(programImage(join(suite, "echo-basic"), ECHO_IMAGES));
    await node.importImages(programImage(join(await programs("node"), "pause"), [NAME_SERVER_IMAGE]));
    await importOurImages(node);
    say("installing gwproxy");
    await installCharts(node, "experimental");
    await node.kubectl(["wait", "--for=condition=Accepted", "gatewayclass/gwproxy", "--timeout=60s"]);
    return node;
  } catch (error) {
    await node.stop();
    throw error;
  }
}
