/**
 * Locates the credential of a client in a header, query parameter, cookie or expression: reads it, and removes it so
 * that no upstream sees it. All three authentication policies use it.
 */
import type { CredentialLocation } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { isGwError } from "../../../lib/errors.ts";
import type { HeaderList } from "../../../lib/header-list.ts";
import { decodeQueryText } from "../../../lib/network/request-target.ts";
import type { Exchange } from "../../exchange/exchange.ts";
import type { PolicyDeps } from "../policy.ts";

export interface CompiledLocation {
  /** True when the credential authenticates to the proxy itself, so that rejections use 407. */
  readonly forProxy: boolean;
  /** @returns undefined when there is no credential, AMBIGUOUS when there are several that differ */
  read(exchange: Exchange): string | typeof AMBIGUOUS | undefined;
  /** Removes every occurrence. */
  strip(request: Pick<Exchange, "requestHeaders" | "target">): void;
}

/** Two different credentials in one place: the proxy could check one and the upstream read the other. */
export const AMBIGUOUS: unique symbol = Symbol("ambiguous credential");

const DEFAULT_HEADER = { name: "authorization", prefix: "Bearer " };
const NONE: readonly string[] = [];

type LocationDeps = Pick<PolicyDeps, "expression">;

export function compileLocation(spec: CredentialLocation | undefined, deps: LocationDeps): CompiledLocation {
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

/**
 * A value without the prefix is not a credential and stays: another policy may read it. The scheme is compared without
 * case (RFC 9110 §11.1).
 */
function inHeader(name: string, prefix: string): CompiledLocation {
  const header = name.toLowerCase();
  const start = prefix.toLowerCase();
  const isCredential = (value: string): boolean => value.slice(0, start.length).toLowerCase() === start;
  const credentialOf = (value: string): string => value.slice(start.length).trim();
  if (header === "proxy-authorization") {
    return {
      forProxy: true,
      read: ({ proxyAuthorization = NONE }) => only(proxyAuthorization.filter(isCredential).map(credentialOf)),
      strip: () => undefined, // it is never forwarded
    };
  }
  return {
    forProxy: false,
    read({ requestHeaders }) {
      const first = requestHeaders.get(header);
      if (first === undefined) return undefined;
      const values = requestHeaders.getAll(header);
      if (values.length > 1) return only(values.filter(isCredential).map(credentialOf));
      const credential = isCredential(first) ? credentialOf(first) : "";
      return credential === "" ? undefined : credential;
    },
    strip({ requestHeaders }) {
      const kept = requestHeaders.getAll(header).filter((value) => !isCredential(value));
      requestHeaders.remove(header);
      for (const value of kept) requestHeaders.add(header, value);
    },
  };
}

function only(credentials: readonly string[]): string | typeof AMBIGUOUS | undefined {
  const [first, ...rest] = credentials.filter((credential) => credential !== "");
  return rest.every((credential) => credential === first) ? first : AMBIGUOUS;
}

function inQuery(name: string): CompiledLocation {
  const isNamed = (parameter: string): boolean => decodeQueryText(parameter.split("=", 1)[0] ?? "") === name;
  const valueOf = (parameter: string): string =>
    parameter.includes("=") ? decodeQueryText(parameter.slice(parameter.indexOf("=") + 1)) : "";
  return {
    forProxy: false,
    read(exchange) {
      exchange.addSecretParameter(name);
      return only(parametersOf(exchange.target).filter(isNamed).map(valueOf));
    },
    // The other parameters keep their bytes: a client may have signed them.
    strip(exchange) {
      const kept = parametersOf(exchange.target).filter((parameter) => !isNamed(parameter));
      const path = exchange.target.split("?", 1)[0] ?? "";
      exchange.target = kept.length === 0 ? path : `${path}?${kept.join("&")}`;
    },
  };
}

function parametersOf(target: string): readonly string[] {
  const at = target.indexOf("?");
  return at < 0 ? NONE : target.slice(at + 1).split("&");
}

function inCookie(name: string): CompiledLocation {
  const isNamed = (pair: string): boolean => pair.split("=", 1)[0]?.trim() === name && pair.includes("=");
  return {
    forProxy: false,
    read: ({ requestHeaders }) =>
      only(
        cookiePairs(requestHeaders)
          .filter(isNamed)
          .map((pair) => pair.slice(pair.indexOf("=") + 1).trim()),
      ),
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

/**
 * A failed expression, or a result that is not text, counts as a missing credential. The credential cannot be removed
 * from the request.
 */
function fromExpression(source: string, deps: LocationDeps): CompiledLocation {
  const expression = deps.expression(source, "request");
  return {
    forProxy: false,
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
