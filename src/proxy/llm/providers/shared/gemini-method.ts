/** Methods of the Gemini API in paths, the same on both of Google's platforms. */
export function geminiMethod(streaming: boolean): string {
  return streaming ? ":streamGenerateContent?alt=sse" : ":generateContent";
}
