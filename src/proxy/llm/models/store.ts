/**
 * The Model resources in force, by the Backends that offer them. The registry compiles the models of a Backend together,
 * so a model that cannot be compiled is refused here, before it could close the others.
 */
import { create } from "@bufbuild/protobuf";
import { BackendSchema, type Backend, type Model } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { providerBehind, type ProviderBehind } from "../../backends/backend-kind.ts";
import { compileModels, nameOfModel } from "./compile.ts";
import type { BackendDeps } from "../../backends/handler.ts";

export class ModelStore {
  readonly #depsOf: (backend: Backend) => BackendDeps;
  readonly #models = new Map<string, Model>();

  constructor(depsOf: (backend: Backend) => BackendDeps) {
    this.#depsOf = depsOf;
  }

  /**
   * @returns keys of the Backends to rebuild
   * @throws ConfigError when the model cannot be served; the former version then stays in force
   */
  put(message: Model): readonly string[] {
    const [key = ""] = message.backends;
    compileModels([message], this.#depsOf(create(BackendSchema, { key })));
    const before = this.#models.get(message.key)?.backends ?? [];
    this.#models.set(message.key, message);
    return [...before, ...message.backends];
  }

  /** @returns keys of the Backends to rebuild */
  remove(key: string): readonly string[] {
    const backends = this.#models.get(key)?.backends ?? [];
    this.#models.delete(key);
    return backends;
  }

  /** Returns the models of a Backend whose providers lead to another one. */
  backendsBehind(backend: string): ProviderBehind[] {
    return this.of(backend).flatMap(({ key, kind }) =>
      kind.case === "provider" ? providerBehind(nameOfModel(key), kind.value) : [],
    );
  }

  /** Returns the models that a Backend offers. */
  of(backend: string): Model[] {
    return [...this.#models.values()].filter(({ backends }) => backends.includes(backend));
  }
}
