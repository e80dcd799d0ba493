/** Matches the first half of a surrogate pair. V8 knows that a Latin-1 string has none and does not scan it. */
const HIGH_SURROGATE = /[\ud800-\udbff]/;

/** Counts the Unicode code points of a text, as the API server does for minLength and maxLength. */
export function codePointLength(text: string): number {
  if (!HIGH_SURROGATE.test(text)) return text.length;
  let length = 0;
  for (let at = 0; at < text.length; at++) {
    length++;
    const unit = text.charCodeAt(at);
    const isHighSurrogate = unit >= 0xd800 && unit <= 0xdbff;
    // A pair is one code point; an unpaired half counts as one as well.
    if (isHighSurrogate && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00) at++;
  }
  return length;
}
