/**
 * The model catalogs in force, one per Gateway, each made of the sources that its parameters name. `Configuration` puts
 * sources in and takes them out; the LLM handler looks models up. A source that does not parse changes nothing, so that
 * its last good text stays in force.
 */
import type { ModelCatalogSource } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError } from "../../../lib/errors.ts";
import { gatewayKey } from "../../../ir/keys.ts";
import { Catalog } from "./catalog.ts";
import { parseCatalogSource, type CatalogSource } from "./catalog-source.ts";

interface Source {
  readonly gateway: string;
  readonly position: number;
  readonly parsed: CatalogSource;
}

export class Catalogs {
  readonly #sources = new Map<string, Source>();
  readonly #byGateway = new Map<string, Catalog>();

  /** @returns undefined where the Gateway has no catalog */
  of({ namespace, gateway }: { readonly namespace: string; readonly gateway: string }): Catalog | undefined {
    return this.#byGateway.size === 0 ? undefined : this.#byGateway.get(gatewayKey(namespace, gateway));
  }

  /** @throws ConfigError for a source that cannot be read */
  put({ key, gateway, position, text, invalidReason }: ModelCatalogSource): void {
    if (invalidReason !== "") throw new ConfigError(invalidReason);
    const owner = gatewayKey(gateway?.namespace ?? "", gateway?.name ?? "");
    this.#sources.set(key, { gateway: owner, position, parsed: parseCatalogSource(text) });
    this.#merge(owner);
  }

  remove(key: string): void {
    const source = this.#sources.get(key);
    this.#sources.delete(key);
    if (source !== undefined) this.#merge(source.gateway);
  }

  #merge(gateway: string): void {
    const own = [...this.#sources.values()].filter((source) => source.gateway === gateway);
    own.sort((a, b) => a.position - b.position);
    if (own.length === 0) this.#byGateway.delete(gateway);
    else this.#byGateway.set(gateway, new Catalog(own.map(({ parsed }) => parsed)));
  }
}
