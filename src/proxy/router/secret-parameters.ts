/**
 * The query parameters that hold credentials, by Bind: those that a credential location of any policy names on its
 * Gateway, its listeners, their routes or a backend. The access log and traces mask them in every request of the Bind,
 * because a request may be refused before the policy runs, or match no route, and then it is unknown which policy was
 * meant.
 */
import type { ListenerTable } from "./listener-table.ts";
import type { PolicySet } from "../policies/policy-set.ts";
import type { RouteTable } from "./route-table.ts";

const NONE: ReadonlySet<string> = new Set();

export interface SecretParametersOptions {
  readonly policies: Pick<PolicySet, "withSecretParameters">;
  readonly listeners: Pick<ListenerTable, "get">;
  readonly routes: Pick<RouteTable, "listenersOf">;
}

export class SecretParameters {
  readonly #options: SecretParametersOptions;
  /** Computed on first use and kept until the configuration changes. */
  readonly #byBind = new Map<string, ReadonlySet<string>>();

  constructor(options: SecretParametersOptions) {
    this.#options = options;
  }

  /**
   * @param bind "port/namespace/gateway"
   * @returns names in lower case
   */
  get(bind: string): ReadonlySet<string> {
    let names = this.#byBind.get(bind);
    if (names === undefined) this.#byBind.set(bind, (names = this.#collect(bind)));
    return names;
  }

  /** Drops all cached sets after a change of the configuration. */
  clear(): void {
    this.#byBind.clear();
  }

  #collect(bind: string): ReadonlySet<string> {
    const names = this.#options.policies
      .withSecretParameters()
      .filter(({ targets }) => targets.some((target) => this.#isOver(target, bind)))
      .flatMap(({ secretParameters }) => secretParameters.map((name) => name.toLowerCase()));
    return names.length === 0 ? NONE : new Set(names);
  }

  /** @param target as `policyTargetKey` formats it */
  #isOver(target: string, bind: string): boolean {
    const colon = target.indexOf(":");
    const name = target.slice(colon + 1);
    const { listeners, routes } = this.#options;
    const isOnBind = (listener: string): boolean => listeners.get(listener)?.message.bind === bind;
    switch (target.slice(0, colon)) {
      case "gateway":
        return bind.slice(bind.indexOf("/") + 1) === name;
      case "bind":
        return bind === name;
      case "listener":
        return isOnBind(name);
      case "route":
        return routes.listenersOf(name.split("#", 1)[0] ?? "").some(isOnBind);
      default:
        // Routes may lead to a backend in many ways, so what its policies expect is masked everywhere.
        return true;
    }
  }
}
