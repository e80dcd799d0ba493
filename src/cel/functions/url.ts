/** URLs as values of Kubernetes rules: absolute ones and absolute paths, as Go's ParseRequestURI takes them. */
import type { CelFunction } from "../environment.ts";
import { Failure, NO_OVERLOAD } from "../errors.ts";
import { Opaque } from "../values.ts";
import type { Declaration } from "./table.ts";

class Url extends Opaque {
  readonly typeName = "net.URL";
  readonly #text: string;
  readonly #parts: RegExpExecArray;

  constructor(text: string, parts: RegExpExecArray) {
    super();
    this.#text = text;
    this.#parts = parts;
  }

  get scheme(): string {
    return this.#parts[1] ?? "";
  }

  get host(): string {
    return this.#parts[2] ?? "";
  }

  get hostname(): string {
    return this.host.replace(/:\d*$/, "").replace(/^\[(.*)\]$/, "$1");
  }

  get port(): string {
    return /:(\d*)$/.exec(this.host.replace(/^\[.*\]/, ""))?.[1] ?? "";
  }

  get path(): string {
    return this.#parts[3] ?? "";
  }

  get query(): Map<string, string[]> {
    const parameters = new URLSearchParams(this.#parts[4] ?? "");
    return new Map([...new Set(parameters.keys())].map((name) => [name, parameters.getAll(name)]));
  }

  override equals(other: unknown): boolean {
    return other instanceof Url && other.#text === this.#text;
  }

  override toText(): string {
    return this.#text;
  }
}

const SHAPE = /^(?:([a-zA-Z][a-zA-Z0-9+.-]*):\/\/(?:[^/?#@]*@)?([^/?#]*))?((?:\/[^?#]*)?)(?:\?([^#]*))?$/;

function parseUrl(text: string): Url | undefined {
  // Spaces, control characters and broken escapes are refused, as Go refuses them.
  if (text === "" || /[\s\u007f]|%(?![0-9a-fA-F]{2})/.test(text)) return undefined;
  const parts = SHAPE.exec(text);
  if (parts === null || (parts[1] === undefined && !text.startsWith("/"))) return undefined;
  if (parts[1] !== undefined && !URL.canParse(text)) return undefined;
  return new Url(text, parts);
}

const NOT_A_URL = new Failure("invalid_argument", "not a URL");

function onUrl(apply: (url: Url) => unknown): CelFunction {
  return (_run, value) => (value instanceof Url ? apply(value) : NO_OVERLOAD);
}

export const URL_FUNCTIONS: readonly Declaration[] = [
  ["isURL(string): bool", (_run, text) => (typeof text === "string" ? parseUrl(text) !== undefined : NO_OVERLOAD)],
  ["url(string): url", (_run, text) => (typeof text === "string" ? (parseUrl(text) ?? NOT_A_URL) : NO_OVERLOAD)],
  [".getScheme(url): string", onUrl((url) => url.scheme)],
  [".getHost(url): string", onUrl((url) => url.host)],
  [".getHostname(url): string", onUrl((url) => url.hostname)],
  [".getPort(url): string", onUrl((url) => url.port)],
  [".getEscapedPath(url): string", onUrl((url) => url.path)],
  [".getQuery(url): map<string, list<string>>", onUrl((url) => url.query)],
];
