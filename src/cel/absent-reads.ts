/**
 * Finds the values that an expression reads and a request may lack: headers, claims of a token or an API key, cookies
 * and query parameters. Reading a missing value makes the expression fail; admission warns where that failure decides
 * about a request.
 */
import type { Call, Node } from "./ast.ts";
import type { Environment } from "./environment.ts";
import { parse } from "./parse.ts";

export interface AbsentRead {
  /** The read as a user would write it: `request.headers["x-team"]`. */
  readonly text: string;
  /** An expression that tests for the value: `"x-team" in request.headers`; undefined when no such test exists. */
  readonly test: string | undefined;
}

/** Paths of maps whose entries depend on the request. */
const HEADERS: ReadonlySet<string> = new Set([
  "request.headers",
  "response.headers",
  "callout.headers",
  "source.connectHeaders",
]);
const CLAIMS: ReadonlySet<string> = new Set(["jwt", "apiKey"]);
/** Members that always exist when their object exists. */
const FIXED: ReadonlySet<string> = new Set(["jwt.rawToken", "apiKey.key"]);

/** @param source an expression that compiles in the environment */
export function findAbsentReads(source: string, environment: Environment): AbsentRead[] {
  const finder = new Finder();
  finder.visit(parse(source, environment));
  return finder.unguarded();
}

class Finder {
  readonly #reads = new Map<string, AbsentRead>();
  /**
   * Reads for which some part of the expression tests. The position of the test is not considered: one test anywhere
   * silences the warning.
   */
  readonly #guarded = new Set<string>();

  unguarded(): AbsentRead[] {
    return [...this.#reads]
      .filter(([text]) => !this.#guarded.has(text) && !this.#guarded.has(text.replace(/\[\d+\]$/, "")))
      .map(([, read]) => read);
  }

  visit(node: Node): void {
    switch (node.kind) {
      case "constant":
      case "identifier":
        return;
      case "select":
        return this.#visitMember(node.field, node.operand, node.optional);
      case "index":
        this.visit(node.index);
        return this.#visitMember(keyOf(node.index), node.operand, node.optional);
      case "call":
        return this.#visitCall(node);
      case "binary":
        if (node.operator === "in") this.#guard(node.right, keyOf(node.left));
        this.visit(node.left);
        return this.visit(node.right);
      case "and":
      case "or":
        return node.args.forEach((arg) => this.visit(arg));
      case "not":
      case "negate":
        return this.visit(node.operand);
      case "conditional":
        return [node.condition, node.consequent, node.otherwise].forEach((part) => this.visit(part));
      case "list":
        return node.items.forEach(({ value }) => this.visit(value));
      case "map":
        return node.entries.forEach(({ key, value }) => [key, value].forEach((part) => this.visit(part)));
    }
  }

  #visitMember(key: string | number | undefined, operand: Node, isOptional: boolean): void {
    const read = isOptional || key === undefined ? undefined : readOf(operand, key);
    if (read === undefined) this.visit(operand);
    else this.#reads.set(read.text, read);
  }

  #visitCall(call: Call): void {
    const { name, target, args } = call;
    const [first, ...rest] = args;
    if (
      target === undefined &&
      name === "has" &&
      first !== undefined &&
      (first.kind === "select" || first.kind === "index")
    ) {
      this.#guard(first.operand, first.kind === "select" ? first.field : keyOf(first.index));
      return this.visit(first.operand);
    }
    // default() and coalesce() handle missing values themselves; only the last argument is used as it is.
    if (target === undefined && (name === "default" || name === "coalesce")) {
      const last = rest.at(-1);
      return last === undefined ? undefined : this.visit(last);
    }
    if (name === "size") this.#guardItems(target ?? first);
    const cookie = cookieOf(call);
    if (cookie !== undefined) this.#reads.set(cookie.text, cookie);
    for (const part of target === undefined ? args : [target, ...args]) this.visit(part);
  }

  /** Counts a list as guarded when the expression asks for its size. */
  #guardItems(list: Node | undefined): void {
    const item = list === undefined ? undefined : queryItem(list, 0);
    if (item !== undefined) this.#guarded.add(item.text.slice(0, -"[0]".length));
  }

  #guard(operand: Node, key: string | number | undefined): void {
    const read = key === undefined ? undefined : readOf(operand, key);
    if (read !== undefined) this.#guarded.add(read.text);
  }
}

/** Returns a constant key, a string or the number of an item; undefined for a key that is computed at run time. */
function keyOf(node: Node): string | number | undefined {
  if (node.kind !== "constant") return undefined;
  const { value } = node;
  if (typeof value === "string") return value;
  return typeof value === "bigint" || typeof value === "number" ? Number(value) : undefined;
}

function readOf(operand: Node, key: string | number): AbsentRead | undefined {
  if (typeof key === "number") return queryItem(operand, key);
  const path = pathOf(operand);
  if (path === undefined) return undefined;
  if (HEADERS.has(path)) {
    const name = JSON.stringify(key.toLowerCase());
    return { text: `${path}[${name}]`, test: `${name} in ${path}` };
  }
  if (!CLAIMS.has(path.split(/[.[]/)[0] ?? "") || FIXED.has(`${path}.${key}`)) return undefined;
  if (/^[A-Za-z_]\w*$/.test(key)) return { text: `${path}.${key}`, test: `has(${path}.${key})` };
  const name = JSON.stringify(key);
  return { text: `${path}[${name}]`, test: `${name} in ${path}` };
}

/** Describes the read `request.uri.query("team")[0]`, which fails when the parameter is missing. */
function queryItem(operand: Node, at: number): AbsentRead | undefined {
  if (operand.kind !== "call" || operand.name !== "query" || operand.target === undefined) return undefined;
  const name = operand.args[0] === undefined ? undefined : keyOf(operand.args[0]);
  const list = `${pathOf(operand.target) ?? "…"}.query(${JSON.stringify(name ?? "…")})`;
  return { text: `${list}[${at}]`, test: `size(${list}) > ${at}` };
}

function cookieOf({ name, target, args: [first] }: Call): AbsentRead | undefined {
  if (name !== "cookie" || target === undefined) return undefined;
  const key = first === undefined ? undefined : keyOf(first);
  const text = `${pathOf(target) ?? "…"}.cookie(${JSON.stringify(key ?? "…")})`;
  return { text, test: undefined };
}

/** Prints a chain of selections such as `request.headers`; undefined for any other expression. */
function pathOf(node: Node): string | undefined {
  if (node.kind === "identifier") return node.name;
  const key = node.kind === "select" ? node.field : node.kind === "index" ? keyOf(node.index) : undefined;
  if (typeof key !== "string" || (node.kind !== "select" && node.kind !== "index")) return undefined;
  const path = pathOf(node.operand);
  if (path === undefined) return undefined;
  return /^[A-Za-z_]\w*$/.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`;
}
