/** Returns the number of a project's colour: four quiet colours, the same everywhere; none belongs to a seat. */
export function hueOf(id: string): number {
  let sum = 0;
  for (const letter of id) sum = (sum * 31 + letter.charCodeAt(0)) >>> 0;
  return sum % 4;
}
