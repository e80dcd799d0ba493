/** Edits a query string and leaves every other parameter as the client wrote it: a client may have signed it. */
import { decodeQueryText } from "../../../lib/network/request-target.ts";

/** Sets the first parameter of the name and removes further ones; appends the parameter when there is none. */
export function setParameter(target: string, name: string, value: string): string {
  const pair = `${encodeURIComponent(name)}=${encodeURIComponent(value)}`;
  let placed = false;
  const pairs = pairsOf(target).flatMap((each) => {
    if (nameOf(each) !== name) return [each];
    if (placed) return [];
    placed = true;
    return [pair];
  });
  if (!placed) pairs.push(pair);
  return join(target, pairs);
}

export function removeParameters(target: string, names: ReadonlySet<string>): string {
  if (names.size === 0) return target;
  return join(
    target,
    pairsOf(target).filter((pair) => !names.has(nameOf(pair))),
  );
}

function pairsOf(target: string): string[] {
  const mark = target.indexOf("?");
  return mark < 0 || mark === target.length - 1 ? [] : target.slice(mark + 1).split("&");
}

function join(target: string, pairs: readonly string[]): string {
  const path = target.split("?", 1)[0] ?? "";
  return pairs.length === 0 ? path : `${path}?${pairs.join("&")}`;
}

function nameOf(pair: string): string {
  return decodeQueryText(pair.split("=", 1)[0] ?? "");
}
