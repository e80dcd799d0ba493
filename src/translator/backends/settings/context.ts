/** What translators of a backend block resolve references with. */
import type { ServiceReader } from "../../policies/shared/external-service.ts";
import type { RemoteKeys } from "../../policies/shared/remote-keys.ts";
import type { SecretReader } from "../../references/secrets.ts";

export interface SettingsContext {
  readonly secrets: SecretReader;
  /** Collects the Backends that the block references. */
  readonly services: ServiceReader;
}

/** The context of a block that may have `mcp`. */
export interface FullSettingsContext extends SettingsContext {
  /** Reads remote JWKS, and collects the requests for them. */
  readonly jwks: Pick<RemoteKeys, "keys">;
}
