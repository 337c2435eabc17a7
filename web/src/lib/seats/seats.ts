/** Seats: eight positions at the table, each with a colour and a shape. */

export type SeatState = 'waiting' | 'speaking' | 'done' | 'failed';

export interface Seat {
  seat: number;
  state: SeatState;
}

export const SEAT_NAMES = [
  'circle',
  'diamond',
  'triangle',
  'square',
  'hexagon',
  'arch',
  'cross',
  'ring',
] as const;

/** Returns the place of the nth of `count` seats round a table of this radius; the first is at the top. */
export function placeAt(n: number, count: number, radius: number): { x: number; y: number } {
  const angle = (n / count) * 2 * Math.PI - Math.PI / 2;
  return { x: round(radius * Math.cos(angle)), y: round(radius * Math.sin(angle)) };
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
