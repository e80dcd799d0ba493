/** A certificate made on the spot by the openssl program: nothing that looks like a key lies in the repository. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export function selfSigned(host: string): { certificate: string; key: string } {
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-xds-"));
  try {
    const [key, certificate] = [join(folder, "key.pem"), join(folder, "cert.pem")];
    const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    const subject = ["-subj", "/CN=gwproxy", "-addext", `subjectAltName=DNS:${host}`, "-days", "1"];
    execFileSync("openssl", ["req", "-x509", ...curve, ...subject, "-keyout", key, "-out", certificate], {
      stdio: "ignore",
    });
    return { certificate: readFileSync(certificate, "utf8"), key: readFileSync(key, "utf8") };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
