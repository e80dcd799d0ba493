/**
 * Defines how the data plane of a Gateway is identified: the names and labels of its objects, and the audience of its
 * token. The deployer, the controller and `gwproxy proxy` use it.
 */
import { hash } from "node:crypto";
import { GATEWAY_GROUP } from "./refs.ts";

/** Audience of the tokens with which a data plane authenticates to the controller. */
export const TOKEN_AUDIENCE = "gwproxy";

/** File name of that token in its mounted folder. */
export const TOKEN_FILE = "xds-token";

/** Label with the name of the Gateway, set on every object that is created for it (GEP-1762). */
export const GATEWAY_NAME_LABEL: string = `${GATEWAY_GROUP}/gateway-name`;
export const GATEWAY_CLASS_LABEL: string = `${GATEWAY_GROUP}/gateway-class-name`;
export const MANAGED_BY_LABEL = "app.kubernetes.io/managed-by";
export const MANAGED_BY = "gwproxy";

/**
 * Annotation with a digest of the object as it was rendered. Every object that the controller applies has it, whatever
 * an overlay adds or changes, so together with the owner reference it tells the controller's objects from others.
 */
export const DIGEST_ANNOTATION = "gwproxy.dev/rendered";

const LONGEST_NAME = 63;

/**
 * Returns the object name of a data plane, which is that of the Gateway. A name too long for a label is cut, and a
 * digest keeps it distinct.
 */
export function dataPlaneName(name: string): string {
  if (name.length <= LONGEST_NAME) return name;
  return `${name.slice(0, 50).replace(/-+$/, "")}-${hash("sha256", name).slice(0, 12)}`;
}
