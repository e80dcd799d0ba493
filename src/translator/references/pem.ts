/**
 * Recognizes PEM blocks (RFC 7468) in referenced Secrets and ConfigMaps. It does not verify certificates; the TLS
 * handshake does.
 */

/**
 * Returns the certificates of a text without comments and other blocks, which may be private keys.
 * @returns "" when there is no certificate
 */
export function certificatesIn(text: string | undefined): string {
  const blocks = (text ?? "").match(/-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g);
  return blocks === null ? "" : `${blocks.join("\n")}\n`;
}

export function isPrivateKey(text: string): boolean {
  return /-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text);
}
