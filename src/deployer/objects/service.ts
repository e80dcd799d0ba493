/** Renders the Service of a data plane, with one TCP port for each listener port. */
import { objectMeta, selectorLabels, type Manifest, type RenderContext } from "./context.ts";

export function renderService(context: RenderContext): Manifest {
  const { plan, ports } = context;
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: objectMeta(context),
    spec: {
      type: "LoadBalancer",
      selector: selectorLabels(plan),
      ports: ports.map((port) => ({ name: `listener-${port}`, port, protocol: "TCP", targetPort: port })),
      ...(plan.address === undefined ? {} : { loadBalancerIP: plan.address }),
    },
  };
}
