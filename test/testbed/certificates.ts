/** The certificates of one test API server, made by openssl: an authority, a server, an administrator, a token key. */
import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Paths of PEM files. */
export interface Certificates {
  readonly ca: string;
  readonly server: KeyPair;
  readonly admin: KeyPair;
  /** Signs service-account tokens; `publicKey` verifies them. */
  readonly serviceAccount: { readonly key: string; readonly publicKey: string };
}

export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

/** Signs certificates of its own authority; `ca` is the path of the authority's. */
export interface Authority {
  readonly ca: string;
  /** Of the authority; who holds it can be anybody. */
  readonly key: string;
  /** @param name of the files @param extension as openssl writes it, such as "extendedKeyUsage=clientAuth" */
  issue(name: string, subject: string, extension: string): Promise<KeyPair>;
}

export async function makeAuthority(directory: string): Promise<Authority> {
  await mkdir(directory, { recursive: true });
  const at = (name: string): string => join(directory, name);
  const openssl = (...args: string[]): Promise<unknown> => run("openssl", args, { cwd: directory });
  const ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  await openssl("req", "-x509", ...ec, "-days", "30", "-subj", "/CN=test-ca", "-keyout", "ca.key", "-out", "ca.crt");
  return {
    ca: at("ca.crt"),
    key: at("ca.key"),
    async issue(name, subject, extension) {
      await openssl("req", ...ec, "-subj", subject, "-keyout", `${name}.key`, "-out", `${name}.csr`);
      await writeFile(at(`${name}.ext`), extension);
      const signed = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "30", "-extfile", `${name}.ext`];
      await openssl("x509", "-req", "-in", `${name}.csr`, ...signed, "-out", `${name}.crt`);
      return { cert: at(`${name}.crt`), key: at(`${name}.key`) };
    },
  };
}

/** The keys that service-account tokens are signed with. */
export async function makeTokenKeys(directory: string): Promise<Certificates["serviceAccount"]> {
  const at = (name: string): string => join(directory, name);
  const curve = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"];
  await run("openssl", ["genpkey", ...curve, "-out", at("sa.key")]);
  await run("openssl", ["pkey", "-in", at("sa.key"), "-pubout", "-out", at("sa.pub")]);
  return { key: at("sa.key"), publicKey: at("sa.pub") };
}

export async function makeCertificates(directory: string): Promise<Certificates> {
  const { ca, issue } = await makeAuthority(directory);
  const server = await issue("server", "/CN=kube-apiserver", "subjectAltName=IP:127.0.0.1,DNS:localhost");
  const admin = await issue("admin", "/O=system:masters/CN=admin", "extendedKeyUsage=clientAuth");
  return { ca, server, admin, serviceAccount: await makeTokenKeys(directory) };
}
