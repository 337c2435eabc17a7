/** ULIDs made here, so that sending the same thing twice is harmless. */

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

export function ulid(
  now: number = Date.now(),
  randomness: Uint8Array = crypto.getRandomValues(new Uint8Array(10)),
): string {
  let number = BigInt(now);
  for (const byte of randomness) number = (number << 8n) | BigInt(byte);
  let text = '';
  for (let shift = 125n; shift >= 0n; shift -= 5n) text += ALPHABET[Number((number >> shift) & 31n)];
  return text;
}
