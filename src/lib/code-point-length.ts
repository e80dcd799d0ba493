/** Half of a character that takes two UTF-16 units. In a text of Latin letters the engine finds none without looking. */
const HIGH_SURROGATE = /[\ud800-\udbff]/;

/** Length of a text in Unicode code points, which is how the API server counts minLength and maxLength. */
export function codePointLength(text: string): number {
  if (!HIGH_SURROGATE.test(text)) return text.length;
  let length = 0;
  for (let at = 0; at < text.length; at++) {
    length++;
    const unit = text.charCodeAt(at);
    const isHighSurrogate = unit >= 0xd800 && unit <= 0xdbff;
    // A pair is one code point; a half alone counts as one as well.
    if (isHighSurrogate && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00) at++;
  }
  return length;
}
