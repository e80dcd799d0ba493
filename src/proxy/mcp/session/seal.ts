/**
 * Seals what clients of MCP carry for the gateway: ids of sessions and streams, and cursors of joined lists. The text is
 * `nonce ‖ ciphertext ‖ tag` of AES-256-GCM in base64url without padding, so clients can neither read nor change it, and
 * every replica and thread with the key can open it. The first of several keys seals and all of them open, so a new key
 * is put in front and the old one stays until what it sealed has expired.
 */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

/** What a text is for; it is authenticated, so that a cursor never opens as a session. */
export type SealPurpose = "session" | "cursor" | "stream";

const ALGORITHM = "aes-256-gcm";
/** NIST SP 800-38D: 96 random bits are safe for 2^32 texts of one key. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export class Seal {
  readonly #keys: readonly [Buffer, ...Buffer[]];

  /** @param keys of 32 bytes each */
  constructor(keys: readonly [Buffer, ...Buffer[]]) {
    this.#keys = keys;
  }

  seal(purpose: SealPurpose, bytes: Uint8Array): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.#keys[0], nonce).setAAD(Buffer.from(purpose));
    return Buffer.concat([nonce, cipher.update(bytes), cipher.final(), cipher.getAuthTag()]).toString("base64url");
  }

  /** @returns undefined when no key opens the text: it was changed, made up, or is for another purpose */
  open(purpose: SealPurpose, text: string): Buffer | undefined {
    const sealed = Buffer.from(text, "base64url");
    // Node's decoder skips what is not base64url. Only one text may stand for these bytes.
    if (sealed.length < NONCE_BYTES + TAG_BYTES || sealed.toString("base64url") !== text) return undefined;
    for (const key of this.#keys) {
      const bytes = openWith(key, purpose, sealed);
      if (bytes !== undefined) return bytes;
    }
    return undefined;
  }
}

function openWith(key: Buffer, purpose: SealPurpose, sealed: Buffer): Buffer | undefined {
  const end = sealed.length - TAG_BYTES;
  const decipher = createDecipheriv(ALGORITHM, key, sealed.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(purpose)).setAuthTag(sealed.subarray(end));
  const bytes = decipher.update(sealed.subarray(NONCE_BYTES, end));
  try {
    return Buffer.concat([bytes, decipher.final()]);
  } catch {
    // The tag does not fit: the text is not of this key, or not of this purpose.
    return undefined;
  }
}
