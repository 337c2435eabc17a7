/** "3 minutes ago", in words. */
const STEPS: [unit: Intl.RelativeTimeFormatUnit, ms: number][] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
];

export function relativeTime(at: number, now: number = Date.now()): string {
  const format = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
  for (const [unit, ms] of STEPS)
    if (now - at >= ms) return format.format(-Math.floor((now - at) / ms), unit);
  return 'just now';
}
