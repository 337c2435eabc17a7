/** Reduced motion: text appears a sentence at a time. */
export function upToSentence(text: string): string {
  const ends = [...text.matchAll(/[.!?…:][)"'”’]?(?=\s)|\n/g)];
  const last = ends.at(-1);
  return last ? text.slice(0, last.index + last[0].length) : '';
}
