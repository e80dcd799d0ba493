/** An authority and a certificate for this machine, made on the spot, as files that a command can be given. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAuthority, createLeaf, type KeyPair } from "../../src/lib/certificates/x509.ts";
import type { ProofContext } from "./prove.ts";

export interface TlsFiles {
  readonly ca: string;
  readonly certificate: string;
  readonly key: string;
  /** What `certificate` and `key` hold. */
  readonly leaf: KeyPair;
}

const HOUR_MS = 3_600_000;

export function tlsFiles(context: Pick<ProofContext, "after">): TlsFiles {
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-tls-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const now = Date.now();
  const validity = { notBefore: new Date(now - HOUR_MS), notAfter: new Date(now + HOUR_MS) };
  const authority = createAuthority("gwproxy test", validity);
  const leaf = createLeaf(authority, ["localhost", "127.0.0.1"], validity);
  const file = (name: string, text: string): string => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  };
  return {
    ca: file("ca.crt", authority.certificate),
    certificate: file("tls.crt", leaf.certificate),
    key: file("tls.key", leaf.key),
    leaf,
  };
}
