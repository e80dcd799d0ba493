/** Where clients find the data plane: one TCP port for each port of a listener. */
import { objectMeta, selectorLabels, type Manifest, type RenderContext } from "../context.ts";

export function renderService(context: RenderContext): Manifest {
  const { placement, ports } = context;
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: objectMeta(context),
    spec: {
      type: "LoadBalancer",
      selector: selectorLabels(placement),
      ports: ports.map((port) => ({ name: `listener-${port}`, port, protocol: "TCP", targetPort: port })),
      ...(placement.address === undefined ? {} : { loadBalancerIP: placement.address }),
    },
  };
}
