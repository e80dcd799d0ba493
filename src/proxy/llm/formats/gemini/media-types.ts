/** Media types by the ending of a file's name, for files in Google's storage. print-turns.ts uses it. */
const TYPES: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  webp: "image/webp",
  gif: "image/gif",
  heic: "image/heic",
  heif: "image/heif",
  pdf: "application/pdf",
  txt: "text/plain",
  html: "text/html",
  csv: "text/csv",
  md: "text/markdown",
  json: "application/json",
  mp3: "audio/mpeg",
  wav: "audio/wav",
  ogg: "audio/ogg",
  flac: "audio/flac",
  aac: "audio/aac",
  m4a: "audio/mp4",
  mp4: "video/mp4",
  mov: "video/quicktime",
  mpeg: "video/mpeg",
  mpg: "video/mpeg",
  webm: "video/webm",
  avi: "video/x-msvideo",
  flv: "video/x-flv",
  wmv: "video/x-ms-wmv",
};

export function mediaTypeOf(uri: string): string | undefined {
  const ending = /\.([a-z0-9]{2,4})(?:[?#].*)?$/i.exec(uri)?.[1]?.toLowerCase() ?? "";
  return Object.hasOwn(TYPES, ending) ? TYPES[ending] : undefined;
}
