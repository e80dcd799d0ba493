/** PEM texts (RFC 7468) as far as references are judged by them; whether a certificate is any good, TLS itself says. */

/** Certificates only: comments and other blocks, which may be keys, stay behind. @returns "" when there is none */
export function certificatesIn(text: string | undefined): string {
  const blocks = (text ?? "").match(/-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g);
  return blocks === null ? "" : `${blocks.join("\n")}\n`;
}

export function isPrivateKey(text: string): boolean {
  return /-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text);
}
