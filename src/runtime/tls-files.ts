/**
 * Reads PEM files that are named on the command line and checks them before anything starts. Their content never
 * reaches a message.
 */
import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { FatalError, messageOf } from "../lib/errors.ts";
import type { ServerCertificate } from "../xds/server/credentials.ts";

/** @throws FatalError when the file cannot be read or contains no certificate */
export async function readCaFile(path: string): Promise<string> {
  const pem = await readPem(path);
  try {
    void new X509Certificate(pem);
  } catch (cause) {
    throw new FatalError(`${path} holds no PEM certificate`, 1, cause);
  }
  return pem;
}

/** @throws FatalError when a file cannot be read, or when key and certificate do not match */
export async function readServerCertificate(certificatePath: string, keyPath: string): Promise<ServerCertificate> {
  const [certificate, key] = await Promise.all([readPem(certificatePath), readPem(keyPath)]);
  try {
    createSecureContext({ cert: certificate, key });
  } catch (cause) {
    throw new FatalError(`${certificatePath} and ${keyPath} are no certificate and its key`, 1, cause);
  }
  return { certificate, key };
}

async function readPem(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    throw new FatalError(`cannot read ${path}: ${messageOf(cause)}`, 1, cause);
  }
}
