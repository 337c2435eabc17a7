/** "Ana Ruiz" → "AR", "ana@example.org" → "A" */
export function initials(name: string): string {
  const words = name.split('@')[0]!.trim().split(/\s+/).filter(Boolean);
  const first = words[0] ?? '?';
  const last = words.length > 1 ? words.at(-1)! : '';
  return ([...first][0]! + ([...last][0] ?? '')).toUpperCase();
}
