/** An error for operators: what a client is not told. */
export function describe({ message, detail }: { message: string; detail: string | undefined }): string {
  return detail === undefined || detail === "" ? message : `${message}: ${detail}`;
}
