/** Where a client puts its credential: reading it, and taking it out so that no upstream sees it. */
import type { CredentialLocation } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { isGwError } from "../../lib/errors.ts";
import type { HeaderList } from "../../lib/header-list.ts";
import type { Exchange } from "../pipeline/exchange.ts";
import type { PolicyDeps } from "./policy.ts";

export interface CompiledLocation {
  /** @returns undefined when there is no credential */
  read(exchange: Exchange): string | undefined;
  /** Takes every occurrence out, also of spellings that were not read. */
  strip(exchange: Exchange): void;
}

const DEFAULT_HEADER = { name: "authorization", prefix: "Bearer " };

export function compileLocation(spec: CredentialLocation | undefined, deps: PolicyDeps): CompiledLocation {
  const location = spec?.location;
  switch (location?.case) {
    case "header":
      return inHeader(location.value.name, location.value.prefix);
    case "queryParameter":
      return inQuery(location.value);
    case "cookie":
      return inCookie(location.value);
    case "expression":
      return fromExpression(location.value, deps);
    case undefined:
      return inHeader(DEFAULT_HEADER.name, DEFAULT_HEADER.prefix);
  }
}

/** A value without the prefix is no credential. The scheme word compares without case (RFC 9110 §11.1). */
function inHeader(name: string, prefix: string): CompiledLocation {
  const header = name.toLowerCase();
  const start = prefix.toLowerCase();
  return {
    read({ requestHeaders }) {
      const value = requestHeaders
        .getAll(header)
        .find((candidate) => candidate.slice(0, start.length).toLowerCase() === start);
      const credential = value?.slice(start.length).trim();
      return credential === "" ? undefined : credential;
    },
    strip: ({ requestHeaders }) => requestHeaders.remove(header),
  };
}

function inQuery(name: string): CompiledLocation {
  return {
    read({ target }) {
      const found = parametersOf(target).find((parameter) => decodeForm(parameter.split("=", 1)[0] ?? "") === name);
      const at = found?.indexOf("=") ?? -1;
      return found === undefined || at < 0 || at === found.length - 1 ? undefined : decodeForm(found.slice(at + 1));
    },
    // The other parameters keep their bytes: an upstream may have signed them.
    strip(exchange) {
      const kept = parametersOf(exchange.target).filter((part) => decodeForm(part.split("=", 1)[0] ?? "") !== name);
      const path = exchange.target.split("?", 1)[0] ?? "";
      exchange.target = kept.length === 0 ? path : `${path}?${kept.join("&")}`;
    },
  };
}

function parametersOf(target: string): string[] {
  const at = target.indexOf("?");
  return at < 0 ? [] : target.slice(at + 1).split("&");
}

/** Text that is not percent-encoded correctly stands for itself. */
function decodeForm(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text;
  }
}

function inCookie(name: string): CompiledLocation {
  const isNamed = (pair: string): boolean => pair.split("=", 1)[0]?.trim() === name && pair.includes("=");
  return {
    read({ requestHeaders }) {
      const pair = cookiePairs(requestHeaders).find(isNamed);
      const value = pair?.slice(pair.indexOf("=") + 1).trim();
      return value === "" ? undefined : value;
    },
    strip({ requestHeaders }) {
      const kept = cookiePairs(requestHeaders).filter((pair) => !isNamed(pair));
      if (kept.length === 0) requestHeaders.remove("cookie");
      else requestHeaders.set("Cookie", kept.map((pair) => pair.trim()).join("; "));
    },
  };
}

function cookiePairs(headers: HeaderList): string[] {
  return headers.getAll("cookie").flatMap((header) => header.split(";"));
}

/** A failed expression, or one that gives no text, is a missing credential. It cannot be taken out of the request. */
function fromExpression(source: string, deps: PolicyDeps): CompiledLocation {
  const expression = deps.expression(source);
  return {
    read(exchange) {
      try {
        const value = expression.evaluate(exchange);
        return typeof value === "string" && value !== "" ? value : undefined;
      } catch (error) {
        if (isGwError(error)) return undefined;
        throw error;
      }
    },
    strip: () => undefined,
  };
}
