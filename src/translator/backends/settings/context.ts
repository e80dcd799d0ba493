/** What translators of a backend block resolve references with. */
import type { ServiceReader } from "../../policies/shared/external-service.ts";
import type { SecretReader } from "../../references/secrets.ts";

export interface SettingsContext {
  readonly secrets: SecretReader;
  /** Collects the Backends that the block references. */
  readonly services: ServiceReader;
}
