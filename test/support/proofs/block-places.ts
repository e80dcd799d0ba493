/** The two objects that can hold a block of backend settings, so that one proof covers both. */
import { documents, routePolicy } from "../gateway/gateway.ts";

export interface BlockPlace {
  readonly kind: "GwBackend" | "GwPolicy";
  /** Returns "GwBackend spec.policies.tcp" for "tcp". */
  field(name: string): string;
  /**
   * Returns the GwBackend `name` with the block, in the GwBackend itself or in a GwPolicy on the HTTPRoute of the same
   * name.
   * @param variant flow YAML such as "static: {…}"
   * @param block flow YAML of the block's members
   */
  objects(name: string, variant: string, block: string): string;
}

function backend(name: string, members: string): string {
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ${name}}
spec: {${members}}
`;
}

export const BLOCK_PLACES: readonly BlockPlace[] = [
  {
    kind: "GwBackend",
    field: (name) => `GwBackend spec.policies.${name}`,
    objects: (name, variant, block) => backend(name, `${variant}, policies: {${block}}`),
  },
  {
    kind: "GwPolicy",
    field: (name) => `GwPolicy spec.backend.${name}`,
    objects: (name, variant, block) =>
      documents(backend(name, variant), routePolicy(`block-${name}`, name, `  backend: {${block}}`)),
  },
];
