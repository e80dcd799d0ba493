/**
 * Finds the word that a user meant, by the edit distance of optimal string alignment (Damerau-Levenshtein): insert,
 * delete, replace, or swap two neighbours.
 */
const LONGEST = 64;

/**
 * Returns the number of edits between two words. Words beyond 64 characters count as entirely different, because the
 * cost is quadratic.
 */
export function editDistance(a: string, b: string): number {
  if (a.length > LONGEST || b.length > LONGEST) return a === b ? 0 : LONGEST;
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1];
      let cost = Math.min(
        cell(last, column) + 1,
        cell(current, column - 1) + 1,
        cell(last, column - 1) + (same ? 0 : 1),
      );
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        cost = Math.min(cost, cell(beforeLast, column - 2) + 1);
      }
      current.push(cost);
    }
    beforeLast = last;
    last = current;
  }
  return cell(last, b.length);
}

/** Returns the candidate nearest to `word`, ignoring case; undefined when none is near enough to be what was meant. */
export function closest(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length > LONGEST) return undefined;
  const wanted = word.toLowerCase();
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(word.length / 3)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(wanted, candidate.toLowerCase());
    if (distance >= bestDistance) continue;
    best = candidate;
    bestDistance = distance;
  }
  return best;
}

/** Returns "did you mean `x`?", or "". */
export function suggestion(word: string, candidates: Iterable<string>): string {
  const found = closest(word, candidates);
  return found === undefined ? "" : `did you mean \`${found}\`?`;
}

function cell(row: readonly number[], at: number): number {
  return row[at] as number;
}
