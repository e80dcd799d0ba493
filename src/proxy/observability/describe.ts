/** Describes an error for operators, with the detail that clients do not receive. */
export function describe({ message, detail }: { message: string; detail: string | undefined }): string {
  return detail === undefined || detail === "" ? message : `${message}: ${detail}`;
}
