/** What a Gateway's data plane is known by: the names of its objects, its labels, and whom its token is made for. */
import { hash } from "node:crypto";
import { GATEWAY_GROUP } from "./refs.ts";

/** Audience of the tokens by which a data plane proves itself to the controller. */
export const TOKEN_AUDIENCE = "gwproxy";

/** The file name of that token where it is mounted. */
export const TOKEN_FILE = "xds-token";

/** Names the Gateway on everything that is made for it (GEP-1762). */
export const GATEWAY_NAME_LABEL: string = `${GATEWAY_GROUP}/gateway-name`;
export const GATEWAY_CLASS_LABEL: string = `${GATEWAY_GROUP}/gateway-class-name`;
export const MANAGED_BY_LABEL = "app.kubernetes.io/managed-by";
export const MANAGED_BY = "gwproxy";

const LONGEST_NAME = 63;

/** Objects of a data plane bear the Gateway's name; a longer one than labels take is cut and told apart by a digest. */
export function dataPlaneName(name: string): string {
  if (name.length <= LONGEST_NAME) return name;
  return `${name.slice(0, 50).replace(/-+$/, "")}-${hash("sha256", name).slice(0, 12)}`;
}
