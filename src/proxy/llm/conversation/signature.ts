/**
 * Signatures of reasoning as clients of another vendor see them: `gw1:<vendor>:<signature>`. A client sends them back
 * with its history; the prefix tells who made them, so that a signature never reaches a vendor who cannot check it.
 */
import type { Signature, Vendor } from "./conversation.ts";

const SEALED = /^gw1:(openai|anthropic|google):/;

/** Prints a signature for a client of another vendor than the one that made it. */
export function printSignature({ vendor, value }: Signature): string {
  return `gw1:${vendor}:${value}`;
}

/** @param native vendor of the client's format, who made signatures without a prefix */
export function readSignature(text: string, native: Vendor): Signature {
  const vendor = SEALED.exec(text)?.[1] as Vendor | undefined; // the expression names the vendors
  return vendor === undefined
    ? { vendor: native, value: text }
    : { vendor, value: text.slice("gw1::".length + vendor.length) };
}
