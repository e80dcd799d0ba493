/** The addresses of the one node, all of them inside its pit. pit.sh routes the ranges. */
export const NODE_ADDRESS = "10.88.0.1";
export const SERVICE_RANGE = "10.96.0.0/16";
/** Of the Services of type LoadBalancer. */
export const BALANCER_RANGE = "10.89.0.0/16";
export const POD_RANGE = "10.244.0.0/16";
