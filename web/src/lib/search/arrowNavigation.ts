/** Arrow keys move from the search field to the hits, down a list and to the other list. */

export function stepAmong(event: KeyboardEvent, field: HTMLElement | undefined): void {
  const page = event.currentTarget as HTMLElement;
  const columns = [...page.querySelectorAll('section')].map((section) => [
    ...section.querySelectorAll<HTMLElement>('[data-hit]'),
  ]);
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const next = nextStop(event.key, event.target as HTMLElement, field, columns);
  if (!next) return;
  event.preventDefault();
  next.focus();
}

function nextStop(
  key: string,
  here: HTMLElement,
  field: HTMLElement | undefined,
  columns: HTMLElement[][],
): HTMLElement | undefined {
  if (here === field) return key === 'ArrowDown' ? columns[0]?.[0] : undefined;
  const column = columns.findIndex((column) => column.includes(here));
  const row = columns[column]?.indexOf(here) ?? -1;
  if (row < 0) return undefined;
  const beside = (by: number) => columns[column + by]?.[Math.min(row, columns[column + by]!.length - 1)];
  switch (key) {
    case 'ArrowDown':
      return columns[column]![row + 1];
    case 'ArrowUp':
      return columns[column]![row - 1] ?? field;
    case 'ArrowRight':
      return beside(1);
    case 'ArrowLeft':
      return beside(-1);
    default:
      return undefined;
  }
}
