/** The URL functions of Kubernetes validation rules, on the parser of url-parts.ts. */
import type { CelFunction, Declaration } from "../function.ts";
import { Failure, NO_OVERLOAD } from "../errors.ts";
import { Opaque } from "../values.ts";
import { type UrlParts, escapedPath, isUrl, queryOf, urlParts } from "./url-parts.ts";

class Url extends Opaque {
  readonly typeName = "net.URL";
  readonly #text: string;
  readonly #parts: UrlParts;

  constructor(text: string, parts: UrlParts) {
    super();
    this.#text = text;
    this.#parts = parts;
  }

  get scheme(): string {
    return this.#parts.scheme;
  }

  get host(): string {
    return this.#parts.host;
  }

  get hostname(): string {
    return this.host.replace(/:\d*$/, "").replace(/^\[(.*)\]$/, "$1");
  }

  get port(): string {
    return /:(\d*)$/.exec(this.host.replace(/^\[.*\]/, ""))?.[1] ?? "";
  }

  get path(): string {
    return escapedPath(this.#parts.path);
  }

  get query(): Map<string, string[]> {
    return queryOf(this.#parts.query);
  }

  override equals(other: unknown): boolean {
    return other instanceof Url && other.#text === this.#text;
  }

  override toText(): string {
    return this.#text;
  }
}

const NOT_A_URL = new Failure("invalid_argument", "not a URL");

function parseUrl(text: string): Url | Failure {
  const parts = urlParts(text);
  return parts === undefined ? NOT_A_URL : new Url(text, parts);
}

function onUrl(apply: (url: Url) => unknown): CelFunction {
  return (_run, value) => (value instanceof Url ? apply(value) : NO_OVERLOAD);
}

export const URL_FUNCTIONS: readonly Declaration[] = [
  ["isURL(string): bool", (_run, text) => (typeof text === "string" ? isUrl(text) : NO_OVERLOAD)],
  ["url(string): url", (_run, text) => (typeof text === "string" ? parseUrl(text) : NO_OVERLOAD)],
  [".getScheme(url): string", onUrl((url) => url.scheme)],
  [".getHost(url): string", onUrl((url) => url.host)],
  [".getHostname(url): string", onUrl((url) => url.hostname)],
  [".getPort(url): string", onUrl((url) => url.port)],
  [".getEscapedPath(url): string", onUrl((url) => url.path)],
  [".getQuery(url): map<string, list<string>>", onUrl((url) => url.query)],
];
