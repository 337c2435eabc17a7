/** One of four quiet colours, the same for a project everywhere; none belongs to a mind. */
export function hueOf(id: string): number {
  let sum = 0;
  for (const letter of id) sum = (sum * 31 + letter.charCodeAt(0)) >>> 0;
  return sum % 4;
}
