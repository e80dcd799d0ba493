/**
 * How clients see what targets name: tools and prompts as `<target>_<name>` where the prefix mode asks for it, tasks as
 * `<target>+<id>`. Both are split at their first delimiter, which is safe because names of targets are DNS labels and
 * contain neither. The multiplexer has one `Naming` for each list of targets.
 */
import { McpPrefixMode } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";

/** The part of a target that names depend on. */
export interface NamedTarget {
  readonly name: string;
}

/** Something that a target serves, by the target's own name for it. */
export interface OwnedName<T> {
  readonly target: T;
  readonly name: string;
}

const NAME_DELIMITER = "_";
const ID_DELIMITER = "+";

export class Naming<T extends NamedTarget> {
  /** In the order of the configuration, which is the order of merged lists. */
  readonly targets: readonly T[];
  /** True when names of tools and prompts carry their target. */
  readonly prefixesNames: boolean;
  /** True when ids of tasks carry their target. */
  readonly prefixesIds: boolean;
  /** Targets come from a Map: names are chosen by clients here, and an object would find `__proto__`. */
  readonly #byName: ReadonlyMap<string, T>;
  readonly #only: T | undefined;

  constructor(mode: McpPrefixMode, targets: readonly T[]) {
    this.targets = targets;
    this.#byName = new Map(targets.map((target) => [target.name, target]));
    this.#only = targets.length === 1 ? targets[0] : undefined;
    const isAlways = mode === McpPrefixMode.ALWAYS;
    this.prefixesIds = isAlways || this.#only === undefined;
    this.prefixesNames = isAlways || (mode !== McpPrefixMode.NEVER && this.#only === undefined);
  }

  /** Returns the only target; undefined when there are none or several. */
  get only(): T | undefined {
    return this.#only;
  }

  find(target: string): T | undefined {
    return this.#byName.get(target);
  }

  /** Returns what stands in front of the names of a target; "" for nothing. */
  namePrefix({ name }: NamedTarget): string {
    return this.prefixesNames ? name + NAME_DELIMITER : "";
  }

  /** Returns what stands in front of the task ids of a target; "" for nothing. */
  idPrefix({ name }: NamedTarget): string {
    return this.prefixesIds ? name + ID_DELIMITER : "";
  }

  /**
   * Splits the name of a tool or prompt as clients see it.
   * @returns undefined for an unknown target, and where names carry none and several targets could own it
   */
  parseName(seen: string): OwnedName<T> | undefined {
    return this.prefixesNames ? this.#split(seen, NAME_DELIMITER) : this.#owned(seen);
  }

  /** Splits the id of a task as clients see it. @returns undefined for an unknown target */
  parseId(seen: string): OwnedName<T> | undefined {
    return this.prefixesIds ? this.#split(seen, ID_DELIMITER) : this.#owned(seen);
  }

  #split(seen: string, delimiter: string): OwnedName<T> | undefined {
    const at = seen.indexOf(delimiter);
    if (at === -1) return undefined;
    const target = this.#byName.get(seen.slice(0, at));
    return target === undefined ? undefined : { target, name: seen.slice(at + 1) };
  }

  #owned(name: string): OwnedName<T> | undefined {
    return this.#only === undefined ? undefined : { target: this.#only, name };
  }
}
